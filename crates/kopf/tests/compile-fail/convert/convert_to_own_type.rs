mod v1 {
    #[derive(kube::CustomResource, Clone, Debug, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
    #[kube(group = "example.com", version = "v1", kind = "Database")]
    pub struct DatabaseSpec {}
}

#[kopf::on::convert(v1::Database, to = v1::Database)]
fn up(old: &v1::Database) -> v1::Database {
    old.clone()
}

fn main() {}
