use kopf::input::Cause;

#[kopf::on::index("kopfexamples")]
fn handle(cause: Cause) -> (String, u32) {
    (cause.to_string(), 1)
}

fn main() {}
