use kopf::input::Param;

#[kopf::on::create("kopfexamples", param = "five")]
async fn handle(size: Param<u32>) {
    println!("{}", *size);
}

fn main() {}
