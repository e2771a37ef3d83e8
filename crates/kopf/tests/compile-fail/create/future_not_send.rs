#[kopf::on::create("kopfexamples")]
async fn handle() {
    let count = std::rc::Rc::new(5);
    std::future::ready(()).await;
    println!("{count}");
}

fn main() {}
