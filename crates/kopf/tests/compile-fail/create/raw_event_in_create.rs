use kopf::input::RawEvent;

#[kopf::on::create("kopfexamples")]
async fn handle(event: RawEvent) {
    println!("{event}");
}

fn main() {}
