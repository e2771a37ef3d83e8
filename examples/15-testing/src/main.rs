//! What you learn: tests with their own cluster and clock, in milliseconds.
use kopf::prelude::*;

/// Labels every config map after a minute.
#[kopf::on::timer("v1", "configmaps", initial_delay = "1m", labels = {"app": "web"})]
async fn mark_as_old(patch: &mut Patch) {
    patch.set("metadata.labels.age", "old");
}

pub fn operator() -> kopf::Operator {
    kopf::operator!("testing", [mark_as_old])
}

fn main() -> kopf::Exit {
    operator().main()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kopf::prelude::*;
    use kopf::testing::{World, WorldError};

    fn age(map: &ConfigMap) -> Option<&str> {
        map.metadata.labels.as_ref()?.get("age").map(String::as_str)
    }

    #[kopf::test]
    async fn maps_are_marked_after_a_minute(world: World) -> Result<(), WorldError> {
        let running = world.start(kopf::operator!("testing", [super::mark_as_old])).await;
        let map = json!({"metadata": {"name": "a", "labels": {"app": "web"}}});
        let map: ConfigMap = serde_json::from_value(map).expect("a valid config map");
        world.create(&map).await?;
        world.advance(59.secs()).await;
        assert_eq!(age(&world.get("a").await?), None);
        world.advance(2.secs()).await;
        assert_eq!(age(&world.get("a").await?), Some("old"));
        running.stop().await.expect("the operator ends well");
        Ok(())
    }
}
