//! Conditions on fields that the server checks: the server supports all of them.

use k8s_openapi::api::core::v1::Node;
use kopf_core::filter::ValueFilter;
use kopf_core::handler::{Handler, HandlerKind};
use kopf_core::invoke::Output;
use kopf_model::Selector;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::world::{World, eventually, handler};

/// An index of the names of objects with a value in a field.
fn index_of(resource: &[&str], field: &str, value: Value) -> Handler {
    let mut index = handler("index_fn", HandlerKind::Index, |call| {
        let subject = call.subject.expect("an index is of objects");
        Ok(Output::Json(json!({"found": subject.object.name()})))
    });
    index.selector = Some(Selector::parse(resource).expect("a selector"));
    index.filters.field = Some(field.into());
    index.filters.value = Some(ValueFilter::Equals(value));
    index
}

/// Rejected lists would be retried forever, and the operator would never see anything.
#[tokio::test(start_paused = true)]
async fn every_selected_field_is_supported_by_the_server() {
    let jobs = ["batch", "v1", "jobs"];
    let requests = ["certificates.k8s.io", "v1", "certificatesigningrequests"];
    let (pods, events) = (["", "v1", "pods"], ["", "v1", "events"]);
    let new_events = ["events.k8s.io", "v1", "events"];
    let mut asked = vec![
        (["", "v1", "secrets"], "type", json!("x"), "type"),
        (["", "v1", "namespaces"], "status.phase", json!("x"), "status.phase"),
        (["", "v1", "nodes"], "spec.unschedulable", json!(true), "spec.unschedulable"),
        (["", "v1", "replicationcontrollers"], "status.replicas", json!(1), "status.replicas"),
        (jobs, "status.succeeded", json!(1), "status.successful"),
        (requests, "spec.signerName", json!("x"), "spec.signerName"),
        (events, "source.component", json!("x"), "source"),
        (events, "reportingComponent", json!("x"), "reportingComponent"),
        (new_events, "reportingController", json!("x"), "reportingController"),
    ];
    let of_pods = ["restartPolicy", "schedulerName", "serviceAccountName", "nodeName"];
    let of_pods = of_pods.map(|field| format!("spec.{field}"));
    let statuses = ["phase", "podIP", "nominatedNodeName"].map(|field| format!("status.{field}"));
    let parts = ["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"];
    let involved = parts.map(|field| format!("involvedObject.{field}"));
    let regarding = parts.map(|field| format!("regarding.{field}"));
    let plain = ["reason".to_owned(), "type".to_owned()];
    asked.extend(
        of_pods.iter().chain(&statuses).map(|field| (pods, &**field, json!("x"), &**field)),
    );
    for (resource, fields) in [(events, &involved), (new_events, &regarding)] {
        let fields = fields.iter().chain(&plain);
        asked.extend(fields.map(|field| (resource, &**field, json!("x"), &**field)));
    }
    for (resource, field, value, label) in asked {
        let world = World::bare();
        let engine = world.start(vec![index_of(&resource, field, value.clone())]).await;
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let selector = format!("fieldSelector={label}%3D{text}");
        let mut lists = world.journal.requests();
        lists.retain(|it| it.query.contains("limit="));
        let is_taken = lists.iter().any(|it| it.query.contains(&selector) && it.code == 200);
        assert!(is_taken, "{resource:?} {field}: {lists:?}");
        engine.stop().await.expect("a clean end");
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_stops_matching_leaves_an_index() {
    let world = World::new().await;
    let index = index_of(&["", "v1", "nodes"], "spec.unschedulable", json!(true));
    let calls = world.calls.clone();
    let reader = handler("reader", HandlerKind::Create, move |call| {
        let index = call.indexes.get("index_fn").expect("the index");
        let mut names: Vec<String> = index
            .get(&json!("found"))
            .iter()
            .filter_map(|value| value.downcast_ref::<Value>()?.as_str().map(str::to_owned))
            .collect();
        names.sort();
        calls.note(names.join(","));
        Ok(Output::Nothing)
    });
    let nodes: Api<Node> = Api::all(world.client.clone());
    for (name, is_off) in [("a", true), ("b", true), ("c", false)] {
        let node = json!({"metadata": {"name": name}, "spec": {"unschedulable": is_off}});
        let node = serde_json::from_value(node).expect("a node");
        nodes.create(&PostParams::default(), &node).await.expect("created");
    }
    let engine = world.start(vec![index, reader]).await;
    assert_eq!(engine.status().snapshot().objects, 2, "the other node never came");
    world.create("before", json!({})).await;
    eventually("the first look", || world.calls.count() == 1).await;
    for (name, is_off) in [("a", false), ("c", true)] {
        let patch = Patch::Merge(json!({"spec": {"unschedulable": is_off}}));
        nodes.patch(name, &PatchParams::default(), &patch).await.expect("patched");
    }
    world.until_handled("before").await;
    world.create("after", json!({})).await;
    eventually("the second look", || world.calls.count() == 2).await;
    assert_eq!(world.calls.all(), ["a,b", "b,c"]);
    engine.stop().await.expect("a clean end");
}
