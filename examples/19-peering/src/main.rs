//! What you learn: several instances of one operator; the one with the highest priority works.
use kopf::Settings;

#[kopf::on::startup(needs = ["list,patch,watch clusterkopfpeerings.kopf.dev"])]
async fn configure(settings: &mut Settings) {
    settings.peering.name = "example".into();
    settings.peering.mandatory = true;
}

#[kopf::on::create("kopf.dev", "v1", "greetings")]
async fn create_fn() -> String {
    // Shows which instance it was. Set the priority with `--priority`; the default is 0.
    format!("handled by process {}", std::process::id())
}

pub fn operator() -> kopf::Operator {
    kopf::operator!("peering", [configure, create_fn])
}

fn main() -> kopf::Exit {
    operator().main()
}
