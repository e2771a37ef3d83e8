use kopf::input::Recorder;
use kopf::prelude::*;

#[kopf::on::convert("example.com", "v1", "databases", to = "v2")]
fn up(recorder: Recorder) -> Value {
    recorder.normal("Converted", "");
    json!({})
}

fn main() {}
