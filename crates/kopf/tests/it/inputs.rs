//! Inputs and outcomes of functions with attributes.

use jiff::Timestamp;
use kopf::Error;
use kopf::children::Owner;
use kopf::closure;
use kopf::filter::{Subject, meta_matches_with, value_matches_with};
use kopf::handler::{Declaration, HandlerSet};
use kopf::input::{Cause, Labels, Reason};
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

fn only<D: HandlerSet>() -> Handler {
    let mut declarations = D::declarations();
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
    assert_eq!(handler.docs.description.as_deref(), Some("Greets everybody."));
    assert_eq!(handler.retrying.retries, Some(5));
    assert!(matches!(handler.kind, HandlerKind::Create));
    let call = call_of(handler, example(), change(Reason::Create));
    assert_eq!(json_of(testing::run(call)), json!({"message": "a 3 web"}));
}

#[kopf::on::create("kopfexamples")]
#[kopf::on::event("kopfexamples")]
#[kopf::on::timer("kopfexamples", interval = "10s")]
#[kopf::on::subhandler]
fn why(cause: Cause) -> String {
    format!("{cause} {:?} {}", cause.reason(), cause.is_initial())
}

#[kopf::on::validate("kopfexamples")]
fn why_not(cause: Cause) -> Result {
    Err(kopf::deny(cause.to_string()))
}

#[test]
fn functions_with_several_attributes_see_the_cause() {
    let tell = |occasion: Occasion| {
        let handler = why::declarations().remove(0).handler;
        json_of(testing::run(call_of(handler, example(), occasion)))
    };
    assert_eq!(tell(change(Reason::Resume)), "resume Some(Resume) false");
    let kind = Some(kopf::input::EventKind::Modified);
    assert_eq!(tell(Occasion::Event { kind }), "MODIFIED None false");
    assert_eq!(tell(Occasion::Event { kind: None }), "listed None false");
    let live = kopf_core::occasion::Live::new(testing::subject(example()).object);
    assert_eq!(tell(Occasion::Background { live }), "background None false");
    let review = kopf_core::occasion::Review {
        operation: "DELETE".into(),
        subresource: None,
        dry_run: false,
        user_info: Value::Null,
        headers: Vec::new(),
        old: None,
        new: None,
        diff: Default::default(),
    };
    let occasion = Occasion::Admission(std::sync::Arc::new(review));
    let Err(denied) = testing::run(call_of(only::<why_not>(), example(), occasion)) else {
        panic!("it is denied");
    };
    assert_eq!(denied.to_string(), "DELETE");
}

/// A custom input by value, made from another input and the object.
#[derive(Debug, PartialEq)]
struct Place(String);

impl<K: kopf::kind::ObjectKind> kopf::input::Input<K> for Place {
    fn take(call: &kopf::input::Call) -> Result<Self> {
        let name: Name = kopf::input::Input::<K>::take(call)?;
        let subject = call.subject.as_ref().expect("there is an object in these kinds");
        let namespace = subject.object.namespace().ok_or("it is nowhere")?;
        Ok(Self(format!("{namespace}/{name}")))
    }
}

/// A custom input by reference that is not a view.
struct Tries(u32);

impl<K: kopf::kind::RetriedKind> kopf::input::InputRef<K> for Tries {
    fn take(call: &kopf::input::Call) -> Result<Self> {
        Ok(Self(call.attempt.retry + 1))
    }
}

/// A custom view that cannot be deserialized.
struct App(String);

impl kopf::input::FromObject for App {
    fn from_object(subject: &Subject) -> Result<Self> {
        Ok(Self(subject.object.label("app").unwrap_or("nothing").to_owned()))
    }
}

#[kopf::on::create("kopfexamples", when = |app: &App| app.0 == "web")]
async fn with_own_inputs(place: Place, tries: &Tries, app: &App) -> String {
    format!("{} {} {}", place.0, tries.0, app.0)
}

#[test]
fn own_inputs_work_like_all_others() {
    let call = call_of(only::<with_own_inputs>(), example(), change(Reason::Create));
    assert_eq!(json_of(testing::run(call)), "b/a 1 web");
    let mut nowhere = example();
    nowhere["metadata"]["namespace"].take();
    let call = call_of(only::<with_own_inputs>(), nowhere, change(Reason::Create));
    let Err(error) = testing::run(call) else { panic!("the input fails, and so does the call") };
    assert_eq!(error.to_string(), "it is nowhere");
    let by_closure =
        closure::create("kopfexamples", |place: Place| async move { Ok::<_, Error>(place.0) });
    let handler = Declaration::from(by_closure).handler;
    let call = call_of(handler, example(), change(Reason::Create));
    assert_eq!(json_of(testing::run(call)), "b/a");
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
fn changes_are_taken_even_if_the_function_fails() {
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

#[kopf::on::update(
    "kopfexamples",
    labels = {"app": |app, spec: &Spec, cause: &Cause| is_own(app, spec) && !cause.is_initial()},
    annotations = {"note": |_, occasion: &Occasion| is_change(occasion)},
    field = "spec.size",
    value = |size, labels: &Labels| is_labelled(size, labels),
)]
async fn picky_by_closures() {}

fn is_own(app: Option<&str>, spec: &Spec) -> bool {
    app == Some("web") && spec["size"] == 3
}

fn is_labelled(size: Option<&Value>, labels: &Labels) -> bool {
    size.is_some() && labels.contains_key("app")
}

fn is_change(occasion: &Occasion) -> bool {
    matches!(occasion, Occasion::Change(_))
}

fn is_in_change(_: Option<&str>, _: &Subject, occasion: &Occasion) -> bool {
    is_change(occasion)
}

#[kopf::on::update(
    "kopfexamples",
    labels = {"app": is_own},
    annotations = {"note": is_in_change},
    field = "spec.size",
    value = is_labelled,
)]
async fn picky_by_functions() {}

#[track_caller]
fn check_that_it_is_picky(handler: &Handler) {
    let filters = &handler.filters;
    let (label, occasion) = (&filters.labels[0].1, change(Reason::Update));
    assert!(
        label
            .matches(Some("web"), &testing::subject(example()), &occasion)
            .expect("it does not fail")
    );
    assert!(
        !label
            .matches(Some("db"), &testing::subject(example()), &occasion)
            .expect("it does not fail")
    );
    let mut small = example();
    small["spec"]["size"] = 1.into();
    assert!(
        !label.matches(Some("web"), &testing::subject(small), &occasion).expect("it does not fail")
    );
    let value = filters.value.as_ref().expect("a filter");
    assert!(
        value
            .matches(Some(&json!(1)), &testing::subject(example()), &occasion)
            .expect("it does not fail")
    );
    let mut bare = example();
    bare["metadata"]["labels"] = json!({});
    assert!(
        !value
            .matches(Some(&json!(1)), &testing::subject(bare), &occasion)
            .expect("it does not fail")
    );
    let note = &filters.annotations[0].1;
    assert!(note.matches(None, &testing::subject(example()), &occasion).expect("it does not fail"));
    assert!(
        !note
            .matches(None, &testing::subject(example()), &Occasion::Index)
            .expect("it does not fail")
    );
}

#[test]
fn functions_of_values_see_the_object_and_its_change() {
    check_that_it_is_picky(&only::<picky_by_closures>());
    check_that_it_is_picky(&only::<picky_by_functions>());
    let by_builder = closure::update("kopfexamples", || async {})
        .label("app", meta_matches_with(|app: Option<&str>, spec: &Spec| is_own(app, spec)))
        .annotation("note", meta_matches_with(is_in_change))
        .field("spec.size")
        .value(value_matches_with(is_labelled));
    check_that_it_is_picky(&Declaration::from(by_builder).handler);
}
