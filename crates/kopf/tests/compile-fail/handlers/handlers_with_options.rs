#[kopf::handlers("kopfexamples")]
mod all {
    #[kopf::on::create("kopfexamples")]
    pub async fn handle() {}
}

fn main() {}
