use kopf::Settings;

#[kopf::on::create("kopfexamples")]
async fn handle(settings: &mut Settings) {
    settings.posting.enabled = false;
}

fn main() {}
