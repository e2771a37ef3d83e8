use kopf::input::Diff;

#[kopf::on::create("kopfexamples")]
#[kopf::on::update("kopfexamples")]
async fn handle(diff: &Diff) {
    println!("{diff}");
}

fn main() {}
