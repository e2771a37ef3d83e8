//! Conversions by attributes and closures: their inputs, results and declarations.

use jiff::Timestamp;
use kopf::Error;
use kopf::Operator;
use kopf::handler::HandlerSet;
use kopf::input::{Labels, Now, Object};
use kopf::prelude::*;
use kopf_core::{Handler, HandlerKind, Occasion, Output};
use kopf_handler::testing;

mod v1 {
    #[derive(
        kube::CustomResource,
        Clone,
        Debug,
        serde::Deserialize,
        serde::Serialize,
        schemars::JsonSchema,
    )]
    #[kube(group = "example.com", version = "v1", kind = "Database", namespaced)]
    pub(crate) struct DatabaseSpec {
        pub(crate) size: String,
    }
}

mod v2 {
    #[derive(
        kube::CustomResource,
        Clone,
        Debug,
        serde::Deserialize,
        serde::Serialize,
        schemars::JsonSchema,
    )]
    #[kube(group = "example.com", version = "v2", kind = "Database", namespaced)]
    pub(crate) struct DatabaseSpec {
        pub(crate) size: u32,
    }
}

mod other {
    #[derive(
        kube::CustomResource,
        Clone,
        Debug,
        serde::Deserialize,
        serde::Serialize,
        schemars::JsonSchema,
    )]
    #[kube(group = "example.com", version = "v3", kind = "Store", plural = "databases", namespaced)]
    pub(crate) struct StoreSpec {}
}

/// Sizes are numbers since v2.
#[kopf::on::convert(v1::Database, to = v2::Database)]
fn up(old: &v1::Database) -> Result<v2::Database> {
    let size = old.spec.size.trim_end_matches("Gi").parse()?;
    Ok(v2::Database::new("", v2::DatabaseSpec { size }))
}

#[kopf::on::convert(v2::Database, to = v1::Database)]
async fn down(new: &v2::Database, name: Name, _now: Now, labels: &Labels) -> v1::Database {
    tracing::debug!("{name} has {} labels", labels.iter().count());
    v1::Database::new("", v1::DatabaseSpec { size: format!("{}Gi", new.spec.size) })
}

#[kopf::on::convert("example.com", "v2", "databases", to = "v3")]
fn dynamic(object: &Object, limit: State<u64>) -> Result<Value> {
    let size = object.spec()["size"].as_u64().unwrap_or_default();
    match size > *limit {
        true => Err(kopf::permanent("too large")),
        false => Ok(json!({"spec": {"size": size}})),
    }
}

#[kopf::on::convert(v1::Database, to = other::Store)]
fn renamed(_: &v1::Database) -> other::Store {
    other::Store::new("", other::StoreSpec {})
}

fn only<D: HandlerSet>() -> Handler {
    let mut declared = D::declarations();
    assert_eq!(declared.len(), 1);
    declared.remove(0).handler
}

fn convert(handler: Handler, object: Value) -> Value {
    let subject = Some(testing::subject(object));
    let call = testing::call(handler, subject, Occasion::Conversion, Timestamp::UNIX_EPOCH);
    match testing::run(call) {
        Ok(Output::Json(value)) => value,
        Ok(_) => Value::Null,
        Err(error) => json!(error.to_string()),
    }
}

fn database(version: &str, size: Value) -> Value {
    json!({
        "apiVersion": format!("example.com/{version}"), "kind": "Database",
        "metadata": {"name": "orders", "namespace": "prod"}, "spec": {"size": size},
    })
}

#[test]
fn types_determine_the_converted_versions() {
    let handler = only::<up>();
    let from = handler.selector.as_ref().expect("a selector").to_string();
    let HandlerKind::Convert(options) = &handler.kind else { panic!("not a conversion") };
    assert_eq!(from, "example.com/v1/plural=databases");
    assert_eq!(options.to.to_string(), "example.com/v2/plural=databases");
    let crd = options.definition.as_ref().expect("a definition").value();
    assert_eq!(crd["spec"]["versions"][0]["name"], "v2");
    assert_eq!(convert(handler, database("v1", json!("5Gi")))["spec"], json!({"size": 5}));
    let back = convert(only::<down>(), database("v2", json!(5)));
    assert_eq!(back["spec"], json!({"size": "5Gi"}));
}

#[test]
fn objects_that_do_not_match_the_type_fail() {
    let failed = convert(only::<up>(), database("v1", json!("many")));
    assert_eq!(failed, "invalid digit found in string");
    let failed = convert(only::<up>(), database("v1", json!(5)));
    let text = failed.as_str().unwrap_or_default();
    assert!(text.starts_with("Database prod/orders cannot be read as `Database`"), "{text}");
}

fn problems(operator: Operator) -> Vec<String> {
    operator.check().err().map(|error| error.problems).unwrap_or_default()
}

#[test]
fn mistakes_are_reported_before_the_start() {
    assert_eq!(problems(kopf::operator!("demo", [up, down])), [""; 0]);
    let found = problems(kopf::operator!("demo", [up, dynamic]));
    let state = "handler dynamic takes `State<u64>`, but neither `.state(...)` nor \
                 `.state_from(...)` gives it";
    assert_eq!(found, [state]);
    let found = problems(kopf::operator!("demo", [renamed]));
    let kinds = "conversion renamed leads from \"Database\" to \"Store\": all versions of a \
                 resource have one kind";
    assert_eq!(found, [kinds]);
    let twin = |operator: Operator| {
        let databases = kopf::closure::of::<v1::Database>();
        operator.on_convert(databases, "v2", |spec: Spec| async move {
            Ok::<_, Error>(json!({"spec": *spec}))
        })
    };
    let found = problems(twin(kopf::operator!("demo", [up])));
    let same = "conversions up and convert are between the same versions: remove one of them";
    assert_eq!(found, [same]);
}
