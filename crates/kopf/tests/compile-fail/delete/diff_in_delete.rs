use kopf::input::Diff;

#[kopf::on::delete("kopfexamples")]
async fn handle(diff: &Diff) {
    println!("{diff}");
}

fn main() {}
