struct Cloud;

#[kopf::handlers]
impl Cloud {
    #[kopf::on::create("kopfexamples")]
    async fn handle(&mut self) {}
}

fn main() {}
