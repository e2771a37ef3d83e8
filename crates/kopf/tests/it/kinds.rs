//! Every kind of handler with the inputs that only it can take.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kopf::Settings;
use kopf::handler::HandlerSet;
use kopf::index::Index;
use kopf::input::{
    Attempt, Cause, Diff, DryRun, EventKind, Live, Memo, Now, Old, Operation, Param, RawEvent,
    Reason, SharedMemo, Stopped, Typed, User, Warnings,
};
use kopf::prelude::*;
use kopf_core::handler::{Delay, ErrorsMode};
use kopf_core::invoke::{BoxFuture, Extensions, IndexView, OperatorContext, Stop, StopReason};
use kopf_core::occasion::{Activity, Change as CoreChange, Live as CoreLive, Review as CoreReview};
use kopf_core::{
    Call, Handler, HandlerError, HandlerKind, MetaFilter, Occasion, Output, ValueFilter,
};
use kopf_handler::testing;
use kopf_model::resource::SelectorName;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Database",
    namespaced,
    status = "DatabaseStatus"
)]
#[serde(rename_all = "camelCase")]
struct DatabaseSpec {
    size_gb: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
struct DatabaseStatus {
    #[serde(default)]
    phase: String,
}

fn database() -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Database",
        "metadata": {"name": "orders", "namespace": "prod", "uid": "u-1"},
        "spec": {"sizeGb": 5},
    })
}

fn declared<D: HandlerSet>() -> Vec<Handler> {
    D::declarations().into_iter().map(|declaration| declaration.handler).collect()
}

fn only<D: HandlerSet>() -> Handler {
    let mut handlers = declared::<D>();
    assert_eq!(handlers.len(), 1);
    handlers.remove(0)
}

fn call(handler: Handler, object: Value, occasion: Occasion) -> Call {
    testing::call(handler, Some(testing::subject(object)), occasion, Timestamp::UNIX_EPOCH)
}

fn change(reason: Reason, old: Option<Value>, new: Option<Value>) -> Occasion {
    let diff = kopf_model::Diff::between(old.as_ref(), new.as_ref());
    let (old, new) = (old.map(Into::into), new.map(Into::into));
    Occasion::Change(CoreChange { reason, initial: false, old, new, diff: Arc::new(diff) })
}

fn value_of(output: Output) -> Value {
    match output {
        Output::Json(value) => value,
        Output::Nothing => Value::Null,
        _ => panic!("neither JSON nor nothing"),
    }
}

fn run(call: Call) -> Value {
    value_of(testing::run(call).expect("the handler succeeds"))
}

/// Grows the disk.
#[kopf::on::update(Database, retries = 5, backoff = "1m30s", errors = permanent, was = ["grow"])]
async fn resize(
    db: &Database,
    diff: &Diff,
    Old(old): Old<Database>,
    status: &mut Status<DatabaseStatus>,
    cause: Cause,
) -> Result<Value> {
    status.phase = "Ready".into();
    let old = old.map(|old| old.spec.size_gb);
    let touched = [diff.touches("spec.sizeGb"), diff.touches("spec"), diff.touches("spec.other")];
    Ok(json!([old, db.spec.size_gb, touched, cause.to_string()]))
}

#[test]
fn typed_updates_see_both_states() {
    let handler = only::<resize>();
    let selector = handler.selector.clone().expect("a selector");
    assert_eq!(selector.group.as_deref(), Some("example.com"));
    assert!(matches!(selector.name, SelectorName::Plural(plural) if plural == "databases"));
    let crd = handler.definition.as_ref().expect("a definition").value();
    assert_eq!(crd["metadata"]["name"], "databases.example.com");
    assert_eq!(handler.retrying.backoff, Some(Duration::from_secs(90)));
    assert_eq!(handler.retrying.errors, Some(ErrorsMode::Permanent));
    assert_eq!(handler.was.iter().map(|id| &**id).collect::<Vec<_>>(), ["grow"]);
    let old = json!({"spec": {"sizeGb": 3}});
    let new = json!({"spec": {"sizeGb": 5}});
    let call = call(handler, database(), change(Reason::Update, Some(old), Some(new)));
    assert_eq!(run(call.clone()), json!([3, 5, [true, true, false], "update"]));
    assert_eq!(Value::from(call.patch.lock().merge.clone()), json!({"status": {"phase": "Ready"}}));
}

#[test]
fn objects_that_do_not_fit_their_type_fail_by_name() {
    let mut object = database();
    object["spec"] = json!({});
    let call = call(only::<resize>(), object, change(Reason::Update, None, None));
    let error = testing::run(call).err().expect("the object does not fit").to_string();
    assert!(error.contains("Database prod/orders cannot be read as `Database`"), "{error}");
    assert!(error.contains("missing field `sizeGb`"), "{error}");
}

#[kopf::on::field("databases.example.com", field = "spec.sizeGb", old = 3, new = |size| size.is_some())]
async fn size_changed(Change { old, new }: Change<u32>) -> Result<Vec<Option<u32>>> {
    Ok(vec![old, new])
}

#[test]
fn field_handlers_get_the_field_and_carry_it_in_the_id() {
    let handler = only::<size_changed>();
    assert_eq!(&*handler.id, "size_changed/spec.sizeGb");
    assert!(matches!(&handler.filters.old, Some(ValueFilter::Equals(value)) if *value == json!(3)));
    assert!(matches!(handler.filters.new, Some(ValueFilter::Matches(_))));
    let occasion = change(Reason::Update, Some(json!(3)), Some(json!(5)));
    assert_eq!(run(call(handler, database(), occasion)), json!([3, 5]));
}

#[kopf::on::delete("v1", "pods", optional)]
fn forget(name: Name) -> String {
    format!("{name} is gone")
}

#[test]
fn plain_values_of_blocking_functions_are_results() {
    let handler = only::<forget>();
    assert!(matches!(handler.kind, HandlerKind::Delete { optional: true }));
    let selector = handler.selector.clone().expect("a selector");
    assert_eq!((selector.group.as_deref(), selector.version.as_deref()), (Some(""), Some("v1")));
    let occasion = change(Reason::Delete, None, None);
    assert_eq!(run(call(handler, database(), occasion)), json!("orders is gone"));
}

#[kopf::on::event(Pod, labels = {"app": "web", "tier": present, "old": absent, "x": |it| it == Some("y")})]
async fn spy(kind: Option<EventKind>, event: RawEvent) -> Result {
    assert_eq!(kind, event.kind);
    Err(kopf::temporary("never mind").retry_in(5.secs()))
}

#[test]
fn events_come_raw_and_errors_carry_their_delay() {
    let handler = only::<spy>();
    assert!(handler.definition.is_none(), "a built-in kind has no definition of ours");
    let labels: Vec<_> = handler.filters.labels.iter().map(|(_, filter)| filter).collect();
    assert!(matches!(
        labels.as_slice(),
        [MetaFilter::Equals(_), MetaFilter::Present, MetaFilter::Absent, MetaFilter::Matches(_)]
    ));
    let occasion = Occasion::Event { kind: Some(EventKind::Added) };
    let Err(HandlerError::Temporary { delay, message }) =
        testing::run(call(handler, database(), occasion))
    else {
        panic!("a temporary error");
    };
    assert_eq!((delay, message.as_str()), (Some(5.secs()), "never mind"));
}

struct AlreadyStopped;

impl Stop for AlreadyStopped {
    fn reason(&self) -> Option<StopReason> {
        Some(StopReason::RESOURCE_DELETED)
    }

    fn wait(&self, _: Option<Duration>) -> BoxFuture<()> {
        Box::pin(async {})
    }

    fn wait_blocking(&self, _: Option<Duration>) {}

    fn wait_for(&self, _: StopReason) -> BoxFuture<()> {
        Box::pin(async {})
    }
}

#[kopf::on::daemon(
    Database,
    initial_delay = |db: &Database| u64::from(db.spec.size_gb).secs(),
    cancellation_timeout = 5,
)]
async fn guard(stopped: Stopped, live: Live<Database>, seen: SharedMemo<u32>) -> Result<u32> {
    while !stopped.wait(10.secs()).await {}
    seen.with(|seen| *seen += 1).await;
    Ok(live.get()?.spec.size_gb)
}

#[test]
fn daemons_see_the_newest_state_and_stop_on_request() {
    let handler = only::<guard>();
    let HandlerKind::Daemon(options) = &handler.kind else { panic!("a daemon") };
    assert_eq!(options.cancellation_timeout, Some(5.secs()));
    let Delay::Computed(compute) = &options.initial_delay else { panic!("a computed delay") };
    assert_eq!(compute(&testing::subject(database())).expect("it does not fail"), 5.secs());
    let live = CoreLive::new(testing::subject(database()).object);
    let mut call = call(handler, database(), Occasion::Background { live: live.clone() });
    call.stopped = Some(Arc::new(AlreadyStopped));
    let mut grown = database();
    grown["spec"]["sizeGb"] = json!(9);
    live.set(kopf_model::Object::from_value(grown));
    assert_eq!(run(call), json!(9));
}

#[kopf::on::timer("databases", interval = "10s", sharp, idle = 5)]
async fn tick(count: &mut Memo<u32>, attempt: Attempt, now: Now) -> u32 {
    assert_eq!((attempt.retry, now.0), (0, Timestamp::UNIX_EPOCH));
    **count += 1;
    **count
}

#[test]
fn memos_are_kept_per_object() {
    let handler = only::<tick>();
    let HandlerKind::Timer(options) = &handler.kind else { panic!("a timer") };
    assert_eq!((options.interval, options.sharp), (Some(10.secs()), true));
    assert_eq!(options.idle, Some(5.secs()));
    let live = CoreLive::new(testing::subject(database()).object);
    let call = call(handler, database(), Occasion::Background { live });
    assert_eq!(run(call.clone()), json!(1));
    assert_eq!(run(call), json!(2));
}

#[kopf::on::index(Pod)]
fn by_node(name: Name) -> BTreeMap<String, u32> {
    BTreeMap::from([(name.to_string(), 7)])
}

#[kopf::on::create("nodes")]
async fn count(name: Name, nodes: &Index<by_node>) -> usize {
    nodes.get(&name.0).len()
}

struct OneEntry(Value, Arc<dyn std::any::Any + Send + Sync>);

impl IndexView for OneEntry {
    fn get(&self, key: &Value) -> Vec<Arc<dyn std::any::Any + Send + Sync>> {
        if *key == self.0 { vec![Arc::clone(&self.1)] } else { Vec::new() }
    }

    fn keys(&self) -> Vec<Value> {
        vec![self.0.clone()]
    }
}

#[test]
fn indexes_are_named_by_their_functions() {
    let handler = only::<by_node>();
    assert!(handler.filters.field.is_none());
    let Ok(Output::Entries(mut entries)) = testing::run(call(handler, database(), Occasion::Index))
    else {
        panic!("entries of an index");
    };
    let (key, value) = entries.remove(0);
    assert_eq!(key, json!("orders"));
    let call = call(only::<count>(), database(), change(Reason::Create, None, None));
    call.indexes.insert("by_node".into(), Arc::new(OneEntry(key, value)));
    assert_eq!(run(call), json!(1));
}

#[kopf::on::validate(Database, operations = ["CREATE", "UPDATE"], persistent)]
async fn check_size(
    db: &Database,
    user: User,
    DryRun(dry_run): DryRun,
    operation: Operation,
    warnings: &mut Warnings,
) -> Result {
    warnings.push(format!("{} {} {dry_run}", user.name(), &*operation));
    if db.spec.size_gb > 4 {
        return Err(kopf::deny("too big").code(422));
    }
    Ok(())
}

fn review() -> Occasion {
    Occasion::Admission(Arc::new(CoreReview {
        operation: "CREATE".into(),
        subresource: None,
        dry_run: true,
        user_info: json!({"username": "eve"}),
        headers: Vec::new(),
        old: None,
        new: None,
        diff: Arc::default(),
    }))
}

#[test]
fn validation_denies_with_a_code_and_warns() {
    let handler = only::<check_size>();
    let HandlerKind::Validate(options) = &handler.kind else { panic!("a webhook") };
    assert_eq!(options.operations, ["CREATE", "UPDATE"]);
    assert!(options.persistent);
    let call = call(handler, database(), review());
    let Err(HandlerError::Denied { message, code }) = testing::run(call.clone()) else {
        panic!("a denial");
    };
    assert_eq!((message.as_str(), code), ("too big", 422));
    assert_eq!(*call.warnings.as_ref().expect("a review").lock(), ["eve CREATE true"]);
}

#[kopf::on::mutate(Database)]
async fn default_size(db: &mut Typed<Database>) {
    db.spec.size_gb = 10;
    db.metadata.labels.get_or_insert_default().insert("sized".into(), "yes".into());
}

#[test]
fn mutation_of_a_typed_object_becomes_a_patch() {
    let call = call(only::<default_size>(), database(), review());
    assert_eq!(run(call.clone()), Value::Null);
    assert_eq!(
        Value::from(call.patch.lock().merge.clone()),
        json!({"metadata": {"labels": {"sized": "yes"}}, "spec": {"sizeGb": 10}})
    );
}

struct Cloud(&'static str);

#[kopf::on::startup(id = "begin")]
async fn configure(settings: &mut Settings, cloud: State<Cloud>) {
    settings.posting.reporting_component = cloud.0.to_owned();
}

#[test]
fn startup_handlers_change_the_settings() {
    let handler = only::<configure>();
    assert_eq!(&*handler.id, "begin");
    let state = Extensions::default();
    state.insert(Arc::new(Cloud("cloud")));
    let mut call =
        testing::call(handler, None, Occasion::Activity(Activity::Startup), Timestamp::UNIX_EPOCH);
    let recorder = Arc::clone(&call.operator.recorder);
    call.operator =
        Arc::new(OperatorContext { settings: Settings::default().into(), state, recorder });
    assert_eq!(run(call.clone()), Value::Null);
    assert_eq!(call.operator.settings.read().posting.reporting_component, "cloud");
}

#[kopf::on::create("pods", param = 5, when = |spec: &Spec, name: Name| spec["sizeGb"] == 5 && name == "orders")]
#[kopf::on::resume("pods", param = 6, deleted)]
async fn with_param(size: Param<u32>, reason: Reason) -> String {
    format!("{} {}", *size, reason.as_str())
}

#[test]
fn stacked_attributes_keep_their_own_options() {
    let handlers = declared::<with_param>();
    assert!(matches!(handlers[0].kind, HandlerKind::Create));
    assert!(matches!(handlers[1].kind, HandlerKind::Resume { deleted: true }));
    let when = handlers[0].filters.when.clone().expect("a condition");
    let occasion = change(Reason::Create, None, None);
    assert!(when(&testing::subject(database()), &occasion).expect("it does not fail"));
    assert!(
        !when(&testing::subject(json!({"metadata": {"name": "other"}})), &occasion)
            .expect("it does not fail")
    );
    assert!(handlers[1].filters.when.is_none());
    let [create, resume] = handlers.try_into().expect("two handlers");
    assert_eq!(run(call(create, database(), occasion)), json!("5 create"));
    let occasion = change(Reason::Resume, None, None);
    assert_eq!(run(call(resume, database(), occasion)), json!("6 resume"));
}

#[derive(Deserialize)]
struct OnlyName {
    metadata: NameOfIt,
}

#[derive(Deserialize)]
struct NameOfIt {
    name: String,
}

#[kopf::on::create(category = "all", when = named_orders, needs = ["get,list pods", "create deployments.apps"])]
async fn partial(view: &OnlyName) -> Result<String, String> {
    Err(format!("no {}", view.metadata.name))
}

fn named_orders(view: &OnlyName) -> bool {
    view.metadata.name == "orders"
}

#[test]
fn partial_views_name_only_some_fields() {
    let handler = only::<partial>();
    let selector = handler.selector.clone().expect("a selector");
    assert!(matches!(selector.name, SelectorName::Category(name) if name == "all"));
    assert_eq!(handler.access.needs[1].group, "apps");
    assert_eq!(handler.access.needs[0].verbs, ["get", "list"]);
    let when = handler.filters.when.clone().expect("a condition");
    let occasion = change(Reason::Create, None, None);
    assert!(when(&testing::subject(database()), &occasion).expect("it does not fail"));
    let error = testing::run(call(handler, database(), occasion)).err().expect("it fails");
    assert_eq!(error.to_string(), "no orders");
}

#[kopf::on::create("*.example.com", everything)]
async fn nothing_to_say() {}

#[test]
fn everything_of_a_group_can_be_selected() {
    let selector = only::<nothing_to_say>().selector.expect("a selector");
    assert!(matches!(selector.name, SelectorName::Everything));
    assert_eq!(selector.group.as_deref(), Some("*.example.com"));
}

#[kopf::handlers]
mod collected {
    use kopf::prelude::*;

    #[kopf::on::create("pods")]
    pub(crate) async fn first() {}

    #[kopf::on::delete("pods")]
    async fn second(name: Name) -> String {
        help(&name)
    }

    fn help(name: &str) -> String {
        name.to_uppercase()
    }
}

struct Shop {
    open: bool,
}

#[kopf::handlers]
impl Shop {
    /// Opens or closes.
    #[kopf::on::create("shops.example.com", retries = 2)]
    async fn visit(&self, name: Name, patch: &mut Patch) -> Result<String> {
        patch.set("metadata.labels.visited", "yes");
        Ok(format!("{name} is {}", self.state()))
    }

    fn state(&self) -> &'static str {
        if self.open { "open" } else { "closed" }
    }
}

#[test]
fn modules_and_types_collect_their_handlers() {
    let ids = |handlers: Vec<Handler>| -> Vec<String> {
        handlers.iter().map(|handler| handler.id.to_string()).collect()
    };
    assert_eq!(ids(declared::<collected::Handlers>()), ["first", "second"]);
    let handler = only::<Shop>();
    assert_eq!((&*handler.id, handler.retrying.retries), ("visit", Some(2)));
    assert_eq!(handler.docs.description.as_deref(), Some("Opens or closes."));
    let mut call = call(handler, database(), change(Reason::Create, None, None));
    let state = Extensions::default();
    state.insert(Arc::new(Shop { open: true }));
    let recorder = Arc::clone(&call.operator.recorder);
    call.operator =
        Arc::new(OperatorContext { settings: Settings::default().into(), state, recorder });
    assert_eq!(run(call.clone()), json!("orders is open"));
    assert!(call.patch.lock().merge.contains_key("metadata"));
}
