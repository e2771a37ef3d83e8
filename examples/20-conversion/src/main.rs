//! What you learn: several versions of a resource, and the conversions between them.
use kopf::prelude::*;

pub mod v1 {
    use serde::{Deserialize, Serialize};

    #[derive(kube::CustomResource, Clone, Debug, Deserialize, Serialize, schemars::JsonSchema)]
    #[kube(group = "example.com", version = "v1", kind = "Disk", namespaced)]
    pub struct DiskSpec {
        /// For example `5Gi`.
        pub size: String,
    }
}

pub mod v2 {
    use serde::{Deserialize, Serialize};

    #[derive(kube::CustomResource, Clone, Debug, Deserialize, Serialize, schemars::JsonSchema)]
    #[kube(group = "example.com", version = "v2", kind = "Disk", namespaced)]
    pub struct DiskSpec {
        pub size: u32,
        /// For example `Gi`.
        pub unit: String,
    }
}

/// In v2, the unit is a separate field.
#[kopf::on::convert(v1::Disk, to = v2::Disk)]
fn up(old: &v1::Disk) -> Result<v2::Disk> {
    let text = &old.spec.size;
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (size, unit) = (text[..end].parse()?, text[end..].to_owned());
    Ok(v2::Disk::new("", v2::DiskSpec { size, unit })) // the metadata is kept anyway
}

#[kopf::on::convert(v2::Disk, to = v1::Disk)]
fn down(new: &v2::Disk) -> v1::Disk {
    v1::Disk::new("", v1::DiskSpec { size: format!("{}{}", new.spec.size, new.spec.unit) })
}

/// Handlers get the version that they name, regardless of which version was written.
#[kopf::on::create(v2::Disk)]
async fn provide(disk: &v2::Disk) {
    tracing::info!("providing {} times 1{}", disk.spec.size, disk.spec.unit);
}

pub fn operator() -> kopf::Operator {
    kopf::operator!("conversion", [up, down, provide])
}

fn main() -> kopf::Exit {
    operator().main()
}

#[cfg(test)]
mod tests {
    use kopf::testing::{World, WorldError};

    use super::{operator, v1, v2};

    #[kopf::test]
    async fn disks_are_the_same_in_all_versions(world: World) -> Result<(), WorldError> {
        let running = world.start(operator()).await;
        let mut old = v1::Disk::new("a", v1::DiskSpec { size: "5Gi".into() });
        old.metadata.labels = Some([("app".to_owned(), "web".to_owned())].into());
        let written = world.create(&old).await?;
        assert_eq!(written.spec.size, "5Gi");
        let mut new: v2::Disk = world.get("a").await?;
        assert_eq!((new.spec.size, new.spec.unit.as_str()), (5, "Gi"));
        assert_eq!(new.metadata.uid, written.metadata.uid);
        assert_eq!(new.metadata.labels, old.metadata.labels);
        new = world.patch("a", &serde_json::json!({"spec": {"size": 7}})).await?;
        assert_eq!(new.spec.size, 7);
        assert_eq!(world.get::<v1::Disk>("a").await?.spec.size, "7Gi");
        assert_eq!(world.list::<v1::Disk>().await?.len(), 1);
        running.stop().await.expect("the operator ends well");
        Ok(())
    }

    #[kopf::test]
    async fn what_cannot_be_converted_is_refused(world: World) {
        let running = world.start(operator()).await;
        let odd = v1::Disk::new("odd", v1::DiskSpec { size: "many".into() });
        let refused = world.create(&odd).await.expect_err("it is refused");
        assert!(refused.to_string().contains("conversion 'up' failed"), "{refused}");
        running.stop().await.expect("the operator ends well");
    }
}
