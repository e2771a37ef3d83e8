//! The same handlers declared by attributes and by closures have the same definitions.

use std::time::Duration;

use kopf::Error;
use kopf::children::Children;
use kopf::closure;
use kopf::filter::{MetaFilter, ValueFilter};
use kopf::handler::{Declaration, ErrorsMode, HandlerSet};
use kopf::input::{Param, Recorder};
use kopf::prelude::*;
use kopf_core::handler::{Delay, HandlerKind, WebhookOptions};

/// Everything that the engine looks at, except the code.
fn describe(declaration: &Declaration) -> String {
    let handler = &declaration.handler;
    let delay = |delay: &Delay| match delay {
        Delay::None => "none".to_owned(),
        Delay::Fixed(time) => format!("{time:?}"),
        Delay::Computed(_) => "computed".to_owned(),
    };
    let webhook = |kind: &str, options: &WebhookOptions| format!("{kind} {options:?}");
    let kind = match &handler.kind {
        HandlerKind::Delete { optional } => format!("delete optional={optional}"),
        HandlerKind::Resume { deleted } => format!("resume deleted={deleted}"),
        HandlerKind::Daemon(options) => format!(
            "daemon {} {:?} {:?} {:?}",
            delay(&options.initial_delay),
            options.cancellation_backoff,
            options.cancellation_timeout,
            options.cancellation_polling,
        ),
        HandlerKind::Timer(options) => format!(
            "timer {} {:?} {:?} {}",
            delay(&options.initial_delay),
            options.interval,
            options.idle,
            options.sharp,
        ),
        HandlerKind::Validate(options) => webhook("validate", options),
        HandlerKind::Mutate(options) => webhook("mutate", options),
        HandlerKind::Convert(options) => format!("convert {:?}", options.to),
        other => format!("{:?}", std::mem::discriminant(other)),
    };
    let meta = |filter: &MetaFilter| match filter {
        MetaFilter::Equals(text) => format!("={text}"),
        MetaFilter::Present => "present".to_owned(),
        MetaFilter::Absent => "absent".to_owned(),
        MetaFilter::Matches(_) => "function".to_owned(),
    };
    let metas = |filters: &[(String, MetaFilter)]| {
        filters.iter().map(|(key, it)| format!("{key}{}", meta(it))).collect::<Vec<_>>()
    };
    let value = |filter: &Option<ValueFilter>| match filter {
        None => "any".to_owned(),
        Some(ValueFilter::Equals(value)) => format!("={value}"),
        Some(ValueFilter::Present) => "present".to_owned(),
        Some(ValueFilter::Absent) => "absent".to_owned(),
        Some(ValueFilter::Matches(_)) => "function".to_owned(),
    };
    let filters = &handler.filters;
    let field = filters.field.as_ref().map(ToString::to_string);
    format!(
        "{} was {:?}: {kind} {:?}\n  {:?}\n  {:?} {:?} {field:?} {} {} {} {}\n  {:?}\n  {:?} {:?} {:?} {} {:?}\n  {:?}",
        handler.id,
        handler.was,
        handler.children,
        handler.selector,
        metas(&filters.labels),
        metas(&filters.annotations),
        value(&filters.value),
        value(&filters.old),
        value(&filters.new),
        filters.when.is_some(),
        handler.retrying,
        handler.access.needs,
        handler.access.grants,
        handler.access.touches,
        handler.param.is_some(),
        handler.docs.description,
        declaration.requires,
    )
}

#[track_caller]
fn check<D: HandlerSet>(closure: impl Into<Declaration>) {
    let declared = D::declarations();
    assert_eq!(declared.len(), 1);
    assert_eq!(describe(&declared[0]), describe(&closure.into()));
}

/// Creates.
#[kopf::on::create(
    "kopf.dev", "v1", "kopfexamples", was = "made", field = "spec.size", value = present,
    labels = {"app": "web", "old": absent}, annotations = {"note": present}, param = 5_u32,
    retries = 3, timeout = "1m", backoff = "5s", errors = permanent, needs = ["get,list pods"],
    when = |spec: &Spec| spec["size"] == 3
)]
async fn created(name: Name, number: Param<u32>, recorder: Recorder) -> Result<String> {
    recorder.normal("Created", *number);
    Ok(name.0)
}

#[kopf::on::update("kopfexamples", field = "spec.size", old = 1, new = absent)]
async fn updated() {}

#[kopf::on::delete("kopfexamples", optional)]
fn deleted(_: Name) {}

#[kopf::on::resume("kopfexamples", deleted, children("pods.v1", "deployments.apps"))]
async fn resumed(_: Children<k8s_openapi::api::core::v1::Pod>) {}

#[kopf::on::field("kopfexamples", field = "spec.size", new = 2)]
async fn resized() {}

#[kopf::on::event("kopfexamples")]
async fn seen() {}

#[test]
fn handlers_of_changes_are_the_same() {
    check::<created>(
        closure::create(
            ("kopf.dev", "v1", "kopfexamples"),
            |name: Name, number: Param<u32>, recorder: Recorder| async move {
                recorder.normal("Created", *number);
                Ok::<_, Error>(name.0)
            },
        )
        .id("created")
        .was("made")
        .description("Creates.")
        .field("spec.size")
        .value(ValueFilter::Present)
        .label("app", MetaFilter::Equals("web".into()))
        .label("old", MetaFilter::Absent)
        .annotation("note", MetaFilter::Present)
        .param(5_u32)
        .retries(3)
        .timeout(60.secs())
        .backoff(5.secs())
        .errors(ErrorsMode::Permanent)
        .needs("get,list pods")
        .when(|spec: &Spec| spec["size"] == 3),
    );
    check::<updated>(
        closure::update("kopfexamples", || async {})
            .id("updated")
            .field("spec.size")
            .old(ValueFilter::Equals(json!(1)))
            .new_value(ValueFilter::Absent),
    );
    check::<deleted>(
        closure::delete("kopfexamples", closure::blocking(|name: Name| drop(name)))
            .id("deleted")
            .optional(),
    );
    let look = |_: Children<k8s_openapi::api::core::v1::Pod>| async {};
    check::<resumed>(
        closure::resume("kopfexamples", look)
            .id("resumed")
            .deleted()
            .children(["pods.v1", "deployments.apps"]),
    );
    check::<resized>(
        closure::field("kopfexamples", "spec.size", || async {})
            .id("resized")
            .new_value(ValueFilter::Equals(json!(2))),
    );
    check::<seen>(closure::event("kopfexamples", || async {}).id("seen"));
}

#[kopf::on::daemon(
    "kopfexamples",
    initial_delay = "1s",
    cancellation_backoff = "2s",
    cancellation_timeout = "3s",
    cancellation_polling = "4s"
)]
async fn beside() {}

#[kopf::on::timer("kopfexamples", interval = "10s", idle = "20s", sharp, initial_delay = |_: &Spec| Duration::ZERO)]
async fn tick() {}

#[kopf::on::index("kopfexamples", field = "spec.size")]
fn by_name(name: Name) -> (String, u32) {
    (name.0, 1)
}

#[kopf::on::validate(
    "kopfexamples", operations = ["CREATE", "UPDATE"], subresource = "scale", persistent,
    side_effects, ignore_failures
)]
async fn validated() {}

#[kopf::on::mutate("kopfexamples")]
async fn mutated() {}

#[test]
fn handlers_of_other_kinds_are_the_same() {
    check::<beside>(
        closure::daemon("kopfexamples", || async {})
            .id("beside")
            .initial_delay(1.secs())
            .cancellation_backoff(2.secs())
            .cancellation_timeout(3.secs())
            .cancellation_polling(4.secs()),
    );
    check::<tick>(
        closure::timer("kopfexamples", 10.secs(), || async {})
            .id("tick")
            .idle(20.secs())
            .sharp()
            .initial_delay_by(|_: &Spec| Duration::ZERO),
    );
    check::<by_name>(
        closure::index("kopfexamples", |name: Name| async move { Ok::<_, Error>((name.0, 1_u32)) })
            .id("by_name")
            .field("spec.size"),
    );
    check::<validated>(
        closure::validate("kopfexamples", || async {})
            .id("validated")
            .operation("CREATE")
            .operation("UPDATE")
            .subresource("scale")
            .persistent()
            .side_effects()
            .ignore_failures(),
    );
    check::<mutated>(closure::mutate("kopfexamples", || async {}).id("mutated"));
}

#[kopf::on::desired(
    "kopfexamples", children("pods.v1"), retries = 2, grants = ["get,list pods"],
    binds = ["clusterroles/view"]
)]
async fn wanted(name: Name) -> Vec<Value> {
    vec![json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": *name}})]
}

#[kopf::on::observe("kopfexamples", children("pods.v1"), labels = {"app": "web"})]
async fn watched(_: Children<k8s_openapi::api::core::v1::Pod>) {}

#[test]
fn handlers_of_children_are_the_same() {
    let pod = |name: Name| json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": *name}});
    let all = move |name: Name| async move { vec![pod(name)] };
    check::<wanted>(
        closure::desired("kopfexamples", ["pods.v1"], all)
            .id("wanted")
            .retries(2)
            .grants("get,list pods")
            .binds("clusterroles/view"),
    );
    let look = |_: Children<k8s_openapi::api::core::v1::Pod>| async {};
    check::<watched>(
        closure::observe("kopfexamples", ["pods.v1"], look)
            .id("watched")
            .label("app", MetaFilter::Equals("web".into())),
    );
}

#[test]
#[should_panic(expected = "handler desired: say which kinds of children there are")]
fn closures_declare_the_kinds_of_children() {
    let nothing: [&str; 0] = [];
    drop(closure::desired("kopfexamples", nothing, || async { Vec::<Value>::new() }));
}

/// Doubles.
#[kopf::on::convert("kopf.dev", "v1", "kopfexamples", to = "v2", param = 2_u32)]
async fn doubled(spec: Spec, by: Param<u32>) -> Result<Value> {
    Ok(json!({"spec": {"size": spec["size"].as_u64().unwrap_or(0) * u64::from(*by)}}))
}

#[test]
fn conversions_are_the_same() {
    let double = |spec: Spec, by: Param<u32>| async move {
        let size = spec["size"].as_u64().unwrap_or(0) * u64::from(*by);
        Ok::<_, Error>(json!({"spec": {"size": size}}))
    };
    check::<doubled>(
        closure::convert(("kopf.dev", "v1", "kopfexamples"), "v2", double)
            .id("doubled")
            .description("Doubles.")
            .param(2_u32),
    );
}

#[kopf::on::startup(retries = 1)]
async fn starting() {}

#[kopf::on::login]
async fn log_in() -> Result<kopf::login::LoginResult> {
    kopf::login::with_service_account()
}

#[kopf::on::probe]
async fn alive() -> Result<u32> {
    Ok(1)
}

#[test]
fn handlers_of_the_operator_are_the_same() {
    check::<starting>(closure::startup(|| async {}).id("starting").retries(1));
    check::<log_in>(closure::login(|| async { kopf::login::with_service_account() }).id("log_in"));
    check::<alive>(closure::probe(|| async { Ok::<_, Error>(1_u32) }).id("alive"));
}

#[test]
fn blocking_closures_run_on_the_pool() {
    let handler =
        closure::create("kopfexamples", closure::blocking(|name: Name| Ok::<_, Error>(name.0)));
    let handler = Declaration::from(handler).handler;
    let object =
        json!({"kind": "KopfExample", "apiVersion": "kopf.dev/v1", "metadata": {"name": "a"}});
    let occasion = kopf::filter::Occasion::Index;
    let subject = Some(kopf_handler::testing::subject(object));
    let now = jiff::Timestamp::UNIX_EPOCH;
    let call = kopf_handler::testing::call(handler, subject, occasion, now);
    let invoke = std::sync::Arc::clone(&call.handler.invoke);
    let kopf_core::Invocation::Blocking(run) = invoke.invoke(call) else {
        panic!("it would block the engine")
    };
    assert!(matches!(run(), Ok(kopf_core::Output::Json(name)) if name == "a"));
}
