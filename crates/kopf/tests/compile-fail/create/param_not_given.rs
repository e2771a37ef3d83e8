use kopf::input::Param;

#[kopf::on::create("kopfexamples")]
async fn handle(size: Param<u32>) {
    println!("{}", *size);
}

fn main() {}
