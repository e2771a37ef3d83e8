use kopf::input::Warnings;

#[kopf::on::create("kopfexamples")]
async fn handle(warnings: &mut Warnings) {
    warnings.push("no".into());
}

fn main() {}
