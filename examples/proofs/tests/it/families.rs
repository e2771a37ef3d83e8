//! Examples of children, and of several operators.

use kopf::prelude::*;
use kopf::testing::{World, WorldError};

use crate::examples::{children, peering};
use crate::is_handled;

type Outcome = Result<(), WorldError>;

#[kopf::test(torture = 24, least_privilege)]
async fn children(world: World) -> Outcome {
    world.operate(children::operator).await;
    let crews = world.objects("crews.v1.kopf.dev");
    let crew = json!({"metadata": {"name": "a"}, "spec": {"members": ["ann", "bob"]}});
    crews.create(&crew).await?;
    crews.until("a", "handling", is_handled).await?;
    crews.until("a", "all aboard", |it| it["status"]["aboard"] == "2 of 2").await?;
    Ok(())
}

#[kopf::test(least_privilege)]
async fn peering(world: World) -> Outcome {
    let manifests = include_str!("../../../19-peering/peering.yaml");
    let documents = serde_norway::Deserializer::from_str(manifests);
    for document in documents {
        let document: Value = serde::Deserialize::deserialize(document).expect("valid YAML");
        world.apply(&document).await?;
    }
    world.operate(peering::operator).await;
    let greetings = world.objects("greetings.v1.kopf.dev");
    greetings.create(&json!({"metadata": {"name": "a"}, "spec": {}})).await?;
    greetings.until("a", "the result", |it| it["status"]["create_fn"].is_string()).await?;
    Ok(())
}
