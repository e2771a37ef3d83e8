#[kopf::on::startup]
async fn handle() -> i64 {
    5
}

fn main() {}
