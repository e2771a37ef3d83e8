//! Tables of desired and existing children, and the resulting steps.

use serde_json::json;

use super::*;
use crate::handler::HandlerKind;
use crate::occasion::Subject;
use crate::test_fixture::{at, handler, resource, subject};

fn known(group: &str, version: &str, kind: &str, namespaced: bool) -> Arc<Resource> {
    Arc::new(Resource {
        group: group.into(),
        version: version.into(),
        plural: format!("{}s", kind.to_lowercase()),
        kind: kind.into(),
        namespaced,
        ..resource()
    })
}

fn kinds() -> Vec<Arc<Resource>> {
    vec![
        known("", "v1", "Service", true),
        known("", "v1", "Namespace", false),
        known("apps", "v1", "Deployment", true),
    ]
}

fn owner(namespace: Option<&str>) -> Subject {
    let mut body = json!({
        "apiVersion": "kopf.dev/v1",
        "kind": "KopfExample",
        "metadata": {"name": "web", "uid": "u1"},
    });
    if let Some(namespace) = namespace {
        body["metadata"]["namespace"] = json!(namespace);
    }
    subject(body)
}

fn service(port: u16) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"port": port}]}})
}

fn made(children: &[Value]) -> Vec<Manifest> {
    manifests(&owner(Some("prod")), "children", children, &kinds()).unwrap()
}

/// A child as the server would store it.
fn stored(manifest: &Manifest) -> Child {
    let mut value = manifest.value.clone();
    value["metadata"]["uid"] = json!("c1");
    value["metadata"]["resourceVersion"] = json!("7");
    value["spec"]["clusterIP"] = json!("10.0.0.1");
    Child { resource: Arc::clone(&manifest.resource), object: Object::from_value(value) }
}

fn changed(child: &Child, change: impl FnOnce(&mut Value)) -> Child {
    let mut value = child.object.value().clone();
    change(&mut value);
    Child { resource: Arc::clone(&child.resource), object: Object::from_value(value) }
}

fn planned(desired: &[Manifest], observed: &[Child]) -> Plan {
    planned_after(desired, observed, &BTreeMap::new())
}

fn planned_after(
    desired: &[Manifest],
    observed: &[Child],
    applied: &BTreeMap<ChildKey, Applied>,
) -> Plan {
    let handler = handler("children", HandlerKind::Desired);
    plan(Inputs { owner: "u1", handler: &handler, desired, observed, applied })
}

#[test]
fn children_get_names_labels_and_owners() {
    let manifest = &made(&[service(80)])[0];
    let metadata = &manifest.value["metadata"];
    assert_eq!(metadata["name"], "web");
    assert_eq!(metadata["namespace"], "prod");
    assert_eq!(metadata["labels"], json!({MANAGED_BY_LABEL: "kopf", OWNER_LABEL: "u1"}));
    assert_eq!(metadata["annotations"][HANDLER_ANNOTATION], "children");
    assert_eq!(metadata["ownerReferences"][0]["uid"], "u1");
    assert!(!manifest.is_foreign);
    assert_eq!(manifest.key.to_string(), "Service prod/web");
}

#[test]
fn owner_references_do_not_leave_the_namespace() {
    let mut elsewhere = service(80);
    elsewhere["metadata"] = json!({"namespace": "other"});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
    for (child, in_namespace, is_foreign) in [
        (elsewhere.clone(), Some("prod"), true),
        (namespace.clone(), Some("prod"), true),
        (elsewhere, None, false),
        (namespace, None, false),
    ] {
        let all = manifests(&owner(in_namespace), "children", &[child], &kinds()).unwrap();
        assert_eq!(all[0].is_foreign, is_foreign);
        assert_eq!(all[0].value["metadata"].get("ownerReferences").is_none(), is_foreign);
    }
}

#[test]
fn namespaces_come_first() {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace"});
    let all = made(&[service(80), namespace]);
    assert_eq!(all[0].key.kind, "Namespace");
}

#[test]
fn mistakes_are_named() {
    let mistake = |children: &[Value]| {
        manifests(&owner(None), "children", children, &kinds()).unwrap_err().to_string()
    };
    let job = json!({"apiVersion": "batch/v1", "kind": "Job"});
    assert!(mistake(&[job]).contains("Job of batch/v1 is not among the kinds"));
    assert_eq!(mistake(&[service(1), service(2)]), "Service web is desired twice");
    assert!(mistake(&[json!({"kind": "Service"})]).contains("no apiVersion"));
}

#[test]
fn fingerprints_ignore_the_order_of_keys_only() {
    let text = |text: &str| fingerprint(&serde_json::from_str(text).unwrap());
    assert_eq!(text(r#"{"a": 1, "b": [2]}"#), text(r#"{"b": [2], "a": 1}"#));
    let all = [r#"{"a": 1}"#, r#"{"a": "1"}"#, r#"["a", 1]"#, r#"{"a": [1]}"#, r#"{"a": {}}"#];
    let all: BTreeSet<u64> = all.into_iter().map(text).collect();
    assert_eq!(all.len(), 5);
}

#[test]
fn missing_children_are_applied_and_existing_ones_kept() {
    let desired = made(&[service(80)]);
    assert_eq!(planned(&desired, &[]).steps, [Step::Apply(0)]);
    let child = stored(&desired[0]);
    let plan = planned(&desired, std::slice::from_ref(&child));
    assert_eq!(plan.steps, []);
    assert_eq!(plan.readiness[&child.key()], Readiness::Ready);
}

#[test]
fn drift_and_changed_manifests_are_applied() {
    let desired = made(&[service(80)]);
    let child = stored(&desired[0]);
    let drifted = changed(&child, |it| it["spec"]["ports"][0]["port"] = json!(81));
    assert_eq!(planned(&desired, &[drifted]).steps, [Step::Apply(0)]);
    let unlabelled = changed(&child, |it| it["metadata"]["labels"][MANAGED_BY_LABEL] = json!("x"));
    assert_eq!(planned(&desired, &[unlabelled]).steps, [Step::Apply(0)]);
    // A field that is no longer desired is not visible in the child; the fingerprint reveals it.
    let mut less = service(80);
    less["spec"] = json!({});
    assert_eq!(planned(&made(&[less]), &[child]).steps, [Step::Apply(0)]);
}

#[test]
fn values_that_the_server_normalises_are_applied_once() {
    let desired = made(&[service(80)]);
    let child = stored(&desired[0]);
    let normalised = changed(&child, |it| it["spec"]["ports"][0]["port"] = json!("80"));
    let content = content_of(normalised.object.value());
    let repairs = Repairs::default();
    let applied = Applied { hash: desired[0].hash.clone(), content, repairs };
    let memory = BTreeMap::from([(child.key(), applied)]);
    let steps = |child: Child| planned_after(&desired, &[child], &memory).steps;
    assert_eq!(steps(normalised.clone()), []);
    let busy = changed(&normalised, |it| {
        it["status"] = json!({"ready": true});
        it["metadata"]["resourceVersion"] = json!("8");
    });
    assert_eq!(steps(busy), [], "its status says nothing about the wish");
    let drifted = changed(&normalised, |it| it["spec"]["clusterIP"] = json!("10.0.0.2"));
    assert_eq!(steps(drifted), [Step::Apply(0)], "somebody has changed it since");
}

#[test]
fn undesired_children_are_deleted_if_they_are_ours() {
    let child = stored(&made(&[service(80)])[0]);
    let deletion = planned(&[], std::slice::from_ref(&child)).steps;
    let [Step::Delete(deletion)] = &deletion[..] else { panic!("one deletion, not {deletion:?}") };
    assert_eq!((deletion.key.name.as_str(), deletion.uid.as_str()), ("web", "c1"));
    for (path, value) in [
        ("/metadata/labels/kopf.dev~1owner", "u2"),
        ("/metadata/annotations/kopf.dev~1handler", "others"),
    ] {
        let others = changed(&child, |it| *it.pointer_mut(path).unwrap() = json!(value));
        assert_eq!(planned(&[], &[others]).steps, [], "{path}");
    }
    let leaving = changed(&child, |it| it["metadata"]["deletionTimestamp"] = json!("now"));
    assert_eq!(planned(&[], &[leaving]).steps, []);
}

#[test]
fn children_of_other_owners_are_left_alone() {
    let desired = made(&[service(80)]);
    let taken = changed(&stored(&desired[0]), |it| {
        it["metadata"]["labels"][OWNER_LABEL] = json!("u2");
    });
    let steps = planned(&desired, &[taken]).steps;
    assert!(matches!(&steps[..], [Step::Refuse { message, .. }] if message.contains("u2")));
}

#[test]
fn a_child_that_is_being_deleted_is_awaited() {
    let desired = made(&[service(80)]);
    let leaving = changed(&stored(&desired[0]), |it| {
        it["metadata"]["deletionTimestamp"] = json!("now");
    });
    let plan = planned(&desired, &[leaving]);
    assert_eq!(plan.steps, []);
    assert_ne!(plan.readiness.into_values().next(), Some(Readiness::Ready));
}

#[test]
fn only_foreign_children_outlive_their_owner() {
    let near = stored(&made(&[service(80)])[0]);
    let mut elsewhere = service(80);
    elsewhere["metadata"] = json!({"namespace": "other"});
    let far = stored(&made(&[elsewhere])[0]);
    let deletion = outliving(&owner(Some("prod")).object, &[near, far]);
    assert_eq!(deletion.len(), 1);
    assert_eq!(deletion[0].0.key.namespace.as_deref(), Some("other"));
}

#[test]
fn subsets_tolerate_defaults_and_nothing_else() {
    for (observed, desired, is_contained) in [
        (json!({"a": 1, "b": 2}), json!({"a": 1}), true),
        (json!({"a": 1}), json!({"a": 2}), false),
        (json!({}), json!({"a": null, "b": {}, "c": [], "d": {"e": null}}), true),
        (json!({}), json!({"a": false}), false),
        (json!([1, 2]), json!([1]), false),
        (json!([{"name": "x", "y": 1}, {"name": "z"}]), json!([{"name": "x"}]), true),
        (json!([{"name": "z"}]), json!([{"name": "x"}]), false),
        (json!([{"port": 1, "name": ""}]), json!([{"port": 1}]), true),
    ] {
        assert_eq!(contains(&observed, &desired), is_contained, "{observed} for {desired}");
    }
}

#[test]
fn kinds_are_ready_when_their_controllers_say_so() {
    let deployment = known("apps", "v1", "Deployment", true);
    let service = known("", "v1", "Service", true);
    let other = known("example.com", "v1", "Thing", true);
    let up = json!({"observedGeneration": 2, "updatedReplicas": 2, "availableReplicas": 2});
    let state = |resource: &Resource, generation: i64, spec: Value, status: Value| {
        let child = json!({"metadata": {"generation": generation}, "spec": spec, "status": status});
        readiness(resource, &child) == Readiness::Ready
    };
    assert!(state(&deployment, 2, json!({"replicas": 2}), up.clone()));
    assert!(!state(&deployment, 3, json!({"replicas": 2}), up.clone()), "not observed");
    assert!(!state(&deployment, 2, json!({"replicas": 3}), up), "one is missing");
    assert!(state(&service, 1, json!({}), json!({})));
    assert!(!state(&service, 1, json!({"type": "LoadBalancer"}), json!({})));
    assert!(state(&other, 1, json!({}), json!({})));
    let conditions = json!({"conditions": [{"type": "Ready", "status": "False"}]});
    assert!(!state(&other, 1, json!({}), conditions));
}

#[test]
fn conditions_are_written_when_they_change() {
    let key = made(&[service(80)])[0].key.clone();
    let ready = Condition::of(&BTreeMap::from([(key.clone(), Readiness::Ready)]));
    let waiting = Condition::of(&BTreeMap::from([(key, Readiness::waiting("is pending"))]));
    assert!(waiting.message.contains("Service prod/web is pending"));
    let others = json!([{"type": "Synced", "status": "True"}]);
    let first = conditions_with(Some(&others), &waiting, Some(1), at(0.0)).unwrap();
    assert_eq!(first[0], others[0]);
    assert_eq!(conditions_with(Some(&first), &waiting, Some(1), at(5.0)), None);
    let second = conditions_with(Some(&first), &waiting, Some(2), at(5.0)).unwrap();
    assert_eq!(second[1]["lastTransitionTime"], first[1]["lastTransitionTime"]);
    let third = conditions_with(Some(&second), &ready, Some(2), at(5.0)).unwrap();
    assert_eq!(third[1]["status"], "True");
    assert_ne!(third[1]["lastTransitionTime"], first[1]["lastTransitionTime"]);
}
