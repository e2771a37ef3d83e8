//! Inputs and outcomes of functions with attributes.

use jiff::Timestamp;
use kopf::Declare;
use kopf::prelude::*;
use kopf_core::occasion::Change as CoreChange;
use kopf_core::{Call, Handler, HandlerError, HandlerKind, Occasion, Output, Returned};
use kopf_handler::testing;
use serde::{Deserialize, Serialize};

fn example() -> Value {
    json!({
        "apiVersion": "kopf.dev/v1", "kind": "KopfExample",
        "metadata": {"name": "a", "namespace": "b", "uid": "u", "labels": {"app": "web"}},
        "spec": {"size": 3},
    })
}

fn change(reason: Reason) -> Occasion {
    Occasion::Change(CoreChange {
        reason,
        initial: false,
        old: None,
        new: None,
        diff: Default::default(),
    })
}

fn call_of(handler: Handler, object: Value, occasion: Occasion) -> Call {
    testing::call(handler, Some(testing::subject(object)), occasion, Timestamp::UNIX_EPOCH)
}

fn only<D: Declare>() -> Handler {
    let mut declarations = D::declare();
    assert_eq!(declarations.len(), 1);
    declarations.remove(0).handler
}

fn json_of(returned: Returned) -> Value {
    match returned.expect("the handler succeeds") {
        Output::Json(value) => value,
        Output::Nothing => Value::Null,
        _ => panic!("neither JSON nor nothing"),
    }
}

/// Greets everybody.
#[kopf::on::create("kopf.dev", "v1", "kopfexamples", retries = 5, backoff = "10s")]
async fn create_fn(spec: &Spec, name: Name, labels: &Labels) -> Result<Value> {
    Ok(json!({"message": format!("{name} {} {}", spec["size"], &labels["app"])}))
}

#[test]
fn a_create_handler_gets_what_it_names_and_returns_json() {
    let handler = only::<create_fn>();
    assert_eq!(&*handler.id, "create_fn");
    assert_eq!(handler.description.as_deref(), Some("Greets everybody."));
    assert_eq!(handler.retrying.retries, Some(5));
    assert!(matches!(handler.kind, HandlerKind::Create));
    let call = call_of(handler, example(), change(Reason::Create));
    assert_eq!(json_of(testing::run(call)), json!({"message": "a 3 web"}));
}

#[derive(Default, Serialize, Deserialize)]
struct Progress {
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<String>,
    #[serde(default)]
    count: u32,
}

#[kopf::on::create("kopfexamples")]
fn sync_with_status(status: &mut Status<Progress>, patch: &mut Patch) -> Result {
    status.phase = Some("ready".into());
    patch.set("metadata.labels.seen", "yes");
    Err("oops")?;
    Ok(())
}

#[test]
fn changes_are_put_back_even_when_the_function_fails() {
    let mut object = example();
    object["status"] = json!({"count": 1, "other": true});
    let call = call_of(only::<sync_with_status>(), object, change(Reason::Create));
    let Err(HandlerError::Arbitrary { message, .. }) = testing::run(call.clone()) else {
        panic!("the handler fails with an arbitrary error");
    };
    assert_eq!(message, "oops");
    let merge = Value::from(call.patch.lock().merge.clone());
    assert_eq!(
        merge,
        json!({"status": {"phase": "ready"}, "metadata": {"labels": {"seen": "yes"}}})
    );
}

#[kopf::on::create("kopfexamples")]
async fn parts_of_adoption(owner: Owner) -> Result<Value> {
    let child = || json!({"kind": "Pod"});
    let owned = owner.clone().beside_others().unblocked().own(child())?;
    let reference = &owned["metadata"]["ownerReferences"][0];
    Ok(json!([
        [reference["controller"], reference["blockOwnerDeletion"], reference["uid"]],
        owned["metadata"].get("name").is_some(),
        owner.name(child())?,
        owner.clone().strict().name(child())?,
        owner.place(child())?,
    ]))
}

#[test]
fn owners_do_parts_of_an_adoption() {
    let call = call_of(only::<parts_of_adoption>(), example(), change(Reason::Create));
    let expected = json!([
        [false, false, "u"],
        false,
        {"kind": "Pod", "metadata": {"generateName": "a-"}},
        {"kind": "Pod", "metadata": {"name": "a"}},
        {"kind": "Pod", "metadata": {"namespace": "b"}},
    ]);
    assert_eq!(json_of(testing::run(call)), expected);
}

#[kopf::on::create(
    "kopfexamples",
    labels = {"app": |app, spec: &Spec| app == Some("web") && spec["size"] == 3},
    field = "spec.size",
    value = |size, labels: &Labels| size.is_some() && labels.contains_key("app")
)]
async fn picky() {}

#[test]
fn functions_of_values_see_the_object() {
    let handler = only::<picky>();
    assert!(handler.filters.labels[0].1.matches(Some("web"), &testing::subject(example())));
    let mut small = example();
    small["spec"]["size"] = 1.into();
    assert!(!handler.filters.labels[0].1.matches(Some("web"), &testing::subject(small)));
    let value = handler.filters.value.as_ref().expect("a filter");
    assert!(value.matches(Some(&json!(1)), &testing::subject(example())));
    let mut bare = example();
    bare["metadata"]["labels"] = json!({});
    assert!(!value.matches(Some(&json!(1)), &testing::subject(bare)));
}
