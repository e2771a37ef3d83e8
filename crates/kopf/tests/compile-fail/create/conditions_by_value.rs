use kopf::input::Conditions;

#[kopf::on::create("kopfexamples")]
async fn handle(conditions: Conditions) {
    drop(conditions);
}

fn main() {}
