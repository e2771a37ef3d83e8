use kopf::input::Stopped;

#[kopf::on::update("kopfexamples")]
async fn handle(stopped: Stopped) {
    stopped.requested().await;
}

fn main() {}
