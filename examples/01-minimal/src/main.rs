//! What you learn: the smallest operator: a resource, a handler, and the status that it writes.
use kopf::prelude::*;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "kopf.dev", version = "v1", kind = "Greeting", namespaced)]
#[kube(status = "GreetingStatus")]
struct GreetingSpec {
    name: String,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
struct GreetingStatus {
    #[serde(default)]
    message: String,
}

#[kopf::on::create(Greeting)]
async fn greet(greeting: &Greeting, status: &mut Status<GreetingStatus>) {
    status.message = format!("Hello, {}!", greeting.spec.name);
    tracing::info!("{}", status.message);
}

pub fn operator() -> kopf::Operator {
    kopf::operator!("minimal", [greet])
}

fn main() -> kopf::Exit {
    operator().main()
}
