//! What you learn: several operators of one kind; the one with the highest priority works.
use kopf::Settings;

#[kopf::on::startup(needs = ["list,patch,watch clusterkopfpeerings.kopf.dev"])]
async fn configure(settings: &mut Settings) {
    settings.peering.name = "example".into();
    settings.peering.mandatory = true;
}

#[kopf::on::create("kopf.dev", "v1", "greetings")]
async fn create_fn() -> String {
    // Which of the operators it was: `--priority` on the command line, or 0.
    format!("handled by process {}", std::process::id())
}

pub fn operator() -> kopf::Operator {
    kopf::operator!("peering", [configure, create_fn])
}

fn main() -> kopf::Exit {
    operator().main()
}
