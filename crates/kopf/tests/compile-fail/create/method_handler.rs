use kopf::prelude::*;

struct Operator;

impl Operator {
    #[kopf::on::create("kopfexamples")]
    async fn handle(&self, name: Name) {
        println!("{name}");
    }
}

fn main() {}
