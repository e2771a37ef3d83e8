fn is_big(size: u32) -> bool {
    size > 5
}

#[kopf::on::create("kopfexamples", labels = {"app": is_big})]
async fn handle() {}

fn main() {}
