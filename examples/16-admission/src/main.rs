//! What you learn: checking and changing objects before they are stored.
use kopf::input::{Typed, User, Warnings};
use kopf::prelude::*;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Bucket", namespaced)]
struct BucketSpec {
    size: u32,
    #[serde(default)]
    class: Option<String>,
}

#[kopf::on::mutate(Bucket, operations = ["CREATE"])]
async fn default_class(bucket: &mut Typed<Bucket>) {
    bucket.spec.class.get_or_insert_with(|| "standard".into());
}

#[kopf::on::validate(Bucket)]
async fn check_size(bucket: &Bucket, user: User, warnings: &mut Warnings) -> Result {
    if bucket.spec.size > 100 && !user.groups().any(|group| group == "system:masters") {
        return Err(kopf::deny("only masters may have more than 100").code(403));
    }
    if bucket.spec.size > 50 {
        warnings.push("this bucket is unusually big".into());
    }
    Ok(())
}

pub fn operator() -> kopf::Operator {
    kopf::operator!("admission", [default_class, check_size])
}

fn main() -> kopf::Exit {
    operator().main()
}
