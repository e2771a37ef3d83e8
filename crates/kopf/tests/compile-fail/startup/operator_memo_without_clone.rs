use kopf::input::SharedMemo;

#[derive(Default)]
struct Limits {
    per_object: u32,
}

#[kopf::on::startup]
async fn handle(limits: SharedMemo<Limits>) {
    limits.with(|limits| limits.per_object = 10).await;
}

fn main() {}
