struct Cloud<T>(T);

#[kopf::handlers]
impl<T> Cloud<T> {
    #[kopf::on::create("kopfexamples")]
    async fn handle(&self) {}
}

fn main() {}
