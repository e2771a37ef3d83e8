use kopf::input::Memo;

#[kopf::on::daemon("kopfexamples")]
async fn handle(count: &mut Memo<u32>) {
    **count += 1;
}

fn main() {}
