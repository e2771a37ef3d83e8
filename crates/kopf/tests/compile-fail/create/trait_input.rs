#[kopf::on::create("kopfexamples")]
async fn handle(name: impl ToString) {
    println!("{}", name.to_string());
}

fn main() {}
