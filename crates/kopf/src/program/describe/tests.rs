//! The output of `describe`.

use expect_test::expect;

use crate::Operator;
use crate::prelude::*;

/// Grows the disk.
///
/// Never shrinks it.
#[kopf::on::field(
    "example.com",
    "v1",
    "databases",
    field = "spec.size",
    retries = 5,
    children("pods.v1")
)]
async fn resize() {}

#[kopf::on::startup]
async fn configure() {}

/// Sizes have a unit.
#[kopf::on::convert("example.com", "v1", "databases", to = "v2")]
fn up(spec: &Spec) -> Value {
    json!({"spec": {"size": spec["size"], "unit": "Gi"}})
}

fn operator() -> Operator {
    crate::operator!("demo", [resize, configure, up])
        .on_delete("pods", |name: Name| async move { drop(name) })
}

#[test]
fn people_get_a_table() {
    expect![[r#"
        The operator `demo` has 4 handlers:

          field    resize/spec.size  example.com/v1/databases
                   Grows the disk.
          startup  configure
          convert  up                example.com/v1/databases to v2
                   Sizes have a unit.
          delete   delete            */*/pods
    "#]]
    .assert_eq(&super::text(&operator()));
}

#[test]
fn programs_get_json() {
    let value = super::document(&operator());
    assert_eq!(value["handlers"][0]["id"], "resize/spec.size");
    assert_eq!(value["handlers"][0]["kind"], "field");
    assert_eq!(value["handlers"][0]["retries"], 5);
    assert_eq!(value["handlers"][0]["children"], json!(["*/v1/pods"]));
    assert_eq!(value["handlers"][1]["resources"], Value::Null);
    assert_eq!(value["handlers"][2]["to"], "v2");
}
