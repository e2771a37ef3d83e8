//! Our operator for `cargo xtask bench engine` and `bench scale`: the variable `CASE` selects the
//! case.

use std::time::Duration;

use kopf::children::Child;
use kopf::input::{Attempt, Recorder, Stopped};
use kopf::prelude::*;

#[kopf::on::create("bench.kopf.dev", "v1", "widgets")]
async fn create() -> Result<Value> {
    Ok(json!({"ok": true}))
}

#[kopf::on::create("bench.kopf.dev", "v1", "widgets", id = "create")]
async fn create_silently() {}

#[kopf::on::create("bench.kopf.dev", "v1", "widgets")]
async fn second() -> Result<Value> {
    Ok(json!({"ok": true}))
}

#[kopf::on::create("bench.kopf.dev", "v1", "widgets")]
async fn stubborn(attempt: Attempt) -> Result<Value> {
    if attempt.retry < 2 {
        return Err(kopf::temporary("not yet").retry_in(Duration::from_millis(100)));
    }
    Ok(json!({"ok": true}))
}

#[kopf::on::update("bench.kopf.dev", "v1", "widgets")]
async fn update() -> Result<Value> {
    Ok(json!({"ok": true}))
}

#[kopf::on::delete("bench.kopf.dev", "v1", "widgets")]
async fn delete() {}

#[kopf::on::create("bench.kopf.dev", "v1", "widgets", id = "create")]
async fn tell(recorder: Recorder) {
    recorder.normal("Created", "seen by the handler");
}

/// Objects are kept for indexes, even for empty ones.
#[kopf::on::index("bench.kopf.dev", "v1", "widgets")]
fn nothing() -> Option<(String, String)> {
    None
}

/// The number of children of each object in the case `desired`.
const CHILDREN: usize = 20;

#[kopf::on::desired("bench.kopf.dev", "v1", "widgets", children("configmaps.v1"))]
fn children(name: Name, spec: &Spec) -> Vec<Child> {
    let child = |index| {
        Child::from(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": format!("{name}-{index}")},
            "data": {"size": spec["size"].to_string()},
        }))
    };
    (0..CHILDREN).map(child).collect()
}

#[kopf::on::timer("bench.kopf.dev", "v1", "widgets", interval = "12h")]
async fn tick() {}

#[kopf::on::daemon("bench.kopf.dev", "v1", "widgets")]
async fn rest(stopped: Stopped) {
    while !stopped.wait(Duration::from_secs(12 * 3600)).await {}
}

#[kopf::on::index("bench.kopf.dev", "v1", "widgets")]
fn sizes(name: Name, spec: &Spec) -> Option<(String, i64)> {
    Some((name.into(), spec["size"].as_i64()?))
}

fn main() -> kopf::Exit {
    let case = std::env::var("CASE").unwrap_or_default();
    match case.as_str() {
        "delete" => kopf::operator!("bench", [create, delete]),
        "silent" => kopf::operator!("bench", [create_silently]),
        "two" => kopf::operator!("bench", [create, second]),
        "two-delete" => kopf::operator!("bench", [create, second, delete]),
        "update" => kopf::operator!("bench", [create, update]),
        "retry" => kopf::operator!("bench", [create, stubborn]),
        "event" => kopf::operator!("bench", [tell]),
        "index" => kopf::operator!("bench", [nothing]),
        "desired" => kopf::operator!("bench", [children]),
        "timer" => kopf::operator!("bench", [tick]),
        "daemon" => kopf::operator!("bench", [rest]),
        "entries" => kopf::operator!("bench", [sizes]),
        _ => kopf::operator!("bench", [create]),
    }
    .main()
}
