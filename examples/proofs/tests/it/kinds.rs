//! Examples for built-in kinds, many kinds, admission and conversion.

use kopf::prelude::*;
use kopf::testing::{KillTest, PodSelector, Stage, Torture, World, WorldError};

use example_proofs::examples::{admission, builtins, conversion, events, many_kinds};

use crate::{example, is_handled};

type Outcome = Result<(), WorldError>;

/// A Pod that is never restarted.
pub(crate) fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "web", "image": "nginx"}]},
    })
}

/// A definition without a Rust type.
fn definition(plural: &str, kind: &str) -> Value {
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.kopf.dev")},
        "spec": {
            "group": "kopf.dev", "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": anything},
            }],
        },
    })
}

#[kopf::test(torture = 16, least_privilege, killed = 2, program = example("events"))]
async fn events(world: World) -> Outcome {
    world.operate(events::operator).await;
    let greeting = json!({
        "apiVersion": "kopf.dev/v1", "kind": "Greeting", "metadata": {"name": "a"},
    });
    world.apply(&greeting).await?;
    world.apply(&pod("web")).await?;
    world.advance(1.secs()).await;
    Ok(())
}

#[kopf::test(torture = 16, least_privilege, killed = 2, program = example("builtins"))]
async fn builtins(world: World) -> Outcome {
    world.server().stage(PodSelector::any(), Stage::crash(1).after(1.secs()));
    world.operate(builtins::operator).await;
    world.apply(&pod("web")).await?;
    let maps = world.objects("configmaps.v1");
    maps.until("web-failed", "the note", |it| it["data"].is_object()).await?;
    Ok(())
}

#[kopf::test(torture = 16, least_privilege, killed = 2, program = example("many_kinds"))]
async fn many_kinds(world: World) -> Outcome {
    world.define(&definition("greetings", "Greeting")).await?;
    world.operate(many_kinds::operator).await;
    world.apply(&pod("web")).await?;
    let greeting = json!({
        "apiVersion": "kopf.dev/v1", "kind": "Greeting", "metadata": {"name": "a"},
    });
    world.apply(&greeting).await?;
    let greetings = world.objects("greetings.v1.kopf.dev");
    greetings.until("a", "the kind", |it| it["status"]["ours"]["kind"] == "Greeting").await?;
    Ok(())
}

/// Nobody can create objects while the operator is not running.
async fn review(world: World) -> Outcome {
    world.operate(admission::operator).await;
    let buckets = world.objects("buckets.v1.example.com");
    for size in [10, 60] {
        let bucket = json!({
            "apiVersion": "example.com/v1", "kind": "Bucket",
            "metadata": {"name": format!("of-{size}")}, "spec": {"size": size},
        });
        let mut created = buckets.create(&bucket).await;
        for _ in 0..100 {
            if created.as_ref().is_ok_and(|bucket| bucket["spec"]["class"] == "standard") {
                break;
            }
            if created.is_ok() {
                // From before the webhooks existed.
                buckets.delete(&format!("of-{size}")).await?;
            }
            tokio::time::sleep(200.millis()).await;
            created = buckets.create(&bucket).await;
        }
        assert_eq!(created?["spec"]["class"], "standard");
    }
    Ok(())
}

#[kopf::test(least_privilege)]
async fn admission(world: World) -> Outcome {
    review(world).await
}

/// Addresses and certificates of webhooks change with each crash.
#[test]
fn admission_in_trouble() {
    Torture::new(2).ignoring("webhooks").run(review);
    let program = example("admission").argument("--webhook=127.0.0.1:0");
    KillTest::new(1).of(program).ignoring("webhooks").run(review);
}

#[kopf::test(least_privilege)]
async fn conversion(world: World) -> Outcome {
    world.operate(conversion::operator).await;
    let disk = json!({
        "apiVersion": "example.com/v1", "kind": "Disk",
        "metadata": {"name": "a"}, "spec": {"size": "5Gi"},
    });
    let old = world.objects("disks.v1.example.com");
    old.create(&disk).await?;
    let new = world.objects("disks.v2.example.com");
    new.until("a", "the handler", is_handled).await?;
    assert_eq!(new.get("a").await?["spec"], json!({"size": 5, "unit": "Gi"}));
    assert_eq!(old.get("a").await?["spec"], json!({"size": "5Gi"}));
    Ok(())
}
