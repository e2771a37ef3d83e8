use kopf::prelude::*;

mod v1 {
    #[derive(kube::CustomResource, Clone, Debug, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
    #[kube(group = "example.com", version = "v1", kind = "Database")]
    pub struct DatabaseSpec {}
}

mod v2 {
    #[derive(kube::CustomResource, Clone, Debug, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
    #[kube(group = "example.com", version = "v2", kind = "Database")]
    pub struct DatabaseSpec {}
}

#[kopf::on::convert(v1::Database, to = v2::Database)]
fn up(old: &v1::Database) -> v1::Database {
    old.clone()
}

#[kopf::on::convert(v2::Database, to = v1::Database)]
fn down(_: &v2::Database) -> Result<v2::Database> {
    Err("never".into())
}

fn main() {}
