//! What you learn: the smallest operator; what a handler returns is stored in the status.
use kopf::prelude::*;

#[kopf::on::create("kopf.dev", "v1", "greetings")]
async fn create_fn(spec: &Spec, name: Name) -> Result<Value> {
    println!("And here we are! Creating {name}: {spec}");
    Ok(json!({"message": "hello world"}))
}

pub fn operator() -> kopf::Operator {
    kopf::operator!("minimal", [create_fn])
}

fn main() -> kopf::Exit {
    operator().main()
}
