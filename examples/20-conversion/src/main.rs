//! What you learn: several versions of a resource, and the ways between them.
use kopf::prelude::*;

pub mod v1 {
    use serde::{Deserialize, Serialize};

    #[derive(kube::CustomResource, Clone, Debug, Deserialize, Serialize, schemars::JsonSchema)]
    #[kube(group = "example.com", version = "v1", kind = "Disk", namespaced)]
    pub struct DiskSpec {
        /// Such as `5Gi`.
        pub size: String,
    }
}

pub mod v2 {
    use serde::{Deserialize, Serialize};

    #[derive(kube::CustomResource, Clone, Debug, Deserialize, Serialize, schemars::JsonSchema)]
    #[kube(group = "example.com", version = "v2", kind = "Disk", namespaced)]
    pub struct DiskSpec {
        pub size: u32,
        /// Such as `Gi`.
        pub unit: String,
    }
}

/// The unit has a field of its own since v2.
#[kopf::on::convert(v1::Disk, to = v2::Disk)]
fn up(old: &v1::Disk) -> Result<v2::Disk> {
    let text = &old.spec.size;
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (size, unit) = (text[..end].parse()?, text[end..].to_owned());
    Ok(v2::Disk::new("", v2::DiskSpec { size, unit })) // the metadata are kept anyway
}

#[kopf::on::convert(v2::Disk, to = v1::Disk)]
fn down(new: &v2::Disk) -> v1::Disk {
    v1::Disk::new("", v1::DiskSpec { size: format!("{}{}", new.spec.size, new.spec.unit) })
}

/// Handlers see the version that they name, whatever was written.
#[kopf::on::create(v2::Disk)]
async fn provide(disk: &v2::Disk, log: Log) {
    log.info(format!("providing {} times 1{}", disk.spec.size, disk.spec.unit));
}

pub fn operator() -> kopf::Operator {
    kopf::operator!("conversion", [up, down, provide])
}

fn main() -> kopf::Exit {
    operator().main()
}
