struct Done;

#[kopf::on::create("kopfexamples")]
async fn handle() -> Done {
    Done
}

fn main() {}
