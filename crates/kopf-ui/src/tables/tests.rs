use kopf_engine::debug::OperatorReport;
use serde_json::json;

use super::*;

fn widget(namespace: &str, name: &str, uid: &str) -> Object {
    Object::from_value(json!({
        "metadata": {"name": name, "namespace": namespace, "uid": uid},
    }))
}

fn key(namespace: &str, name: &str) -> Key {
    (Some(namespace.to_owned()), name.to_owned())
}

struct Filled {
    tables: Tables,
    widgets: Arc<str>,
    layout: StorageLayout,
}

fn filled() -> Filled {
    let layout = StorageLayout::of(&OperatorReport::default());
    let widgets: Arc<str> = Arc::from("widgets.x.dev");
    let mut tables = Tables::default();
    for (namespace, name) in [("one", "a"), ("one", "b"), ("two", "c")] {
        tables.put(&widgets, &layout, &widget(namespace, name, name));
    }
    Filled { tables, widgets, layout }
}

#[test]
fn who_has_asked_before_gets_only_what_has_changed() {
    let Filled { mut tables, widgets, layout } = filled();
    let first = tables.since("widgets.x.dev", 0).expect("a table");
    assert!(first.complete);
    assert_eq!(first.rows.len(), 3);
    let nothing = tables.since("widgets.x.dev", first.revision).expect("a table");
    assert!(nothing.rows.is_empty() && nothing.removed.is_empty() && !nothing.complete);
    tables.put(&widgets, &layout, &widget("one", "a", "a"));
    assert_eq!(tables.since("widgets.x.dev", 0).expect("a table").revision, first.revision);
    tables.put(&widgets, &layout, &widget("one", "a", "another"));
    tables.remove("widgets.x.dev", &key("two", "c"));
    let news = tables.since("widgets.x.dev", first.revision).expect("a table");
    let names: Vec<&str> = news.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["a"]);
    assert_eq!(news.removed, [key("two", "c")]);
}

#[test]
fn a_list_of_one_namespace_says_nothing_about_others() {
    let Filled { mut tables, .. } = filled();
    tables.retain("widgets.x.dev", Some("one"), |key| key.1 == "a");
    let mut names: Vec<String> = tables
        .since("widgets.x.dev", 0)
        .expect("a table")
        .rows
        .into_iter()
        .map(|it| it.name)
        .collect();
    names.sort();
    assert_eq!(names, ["a", "c"]);
}

#[test]
fn a_revision_from_the_future_is_one_of_a_former_server() {
    let Filled { tables, .. } = filled();
    assert!(tables.since("widgets.x.dev", 1000).expect("a table").complete);
}

#[test]
fn tables_that_nobody_wants_are_dropped() {
    let Filled { mut tables, .. } = filled();
    tables.keep(&[Arc::from("gadgets.x.dev")]);
    assert!(tables.since("widgets.x.dev", 0).is_none());
    assert!(tables.since("gadgets.x.dev", 0).expect("a table").rows.is_empty());
    assert_eq!(tables.rows, 0);
}

#[test]
fn an_operator_that_began_anew_has_other_memories() {
    let Filled { mut tables, .. } = filled();
    tables.remember(Overview { sequence: 10, objects: Vec::new() });
    assert_eq!(tables.sequence(), 10);
    tables.remember(Overview { sequence: 3, objects: Vec::new() });
    assert_eq!(tables.sequence(), 3);
}

#[test]
fn objects_that_failed_or_wait_for_a_retry_are_failing() {
    let Filled { mut tables, widgets, .. } = filled();
    let report = OperatorReport {
        progress_prefix: Some("kopf.dev".into()),
        last_handled_annotation: Some("kopf.dev/last-handled".into()),
        ..OperatorReport::default()
    };
    let layout = StorageLayout::of(&report);
    let mut failed = widget("two", "c", "c").value().clone();
    let record = r#"{"retries":3,"success":false,"failure":true,"message":"no such plan"}"#;
    failed["metadata"]["annotations"] = json!({"kopf.dev/create": record});
    tables.put(&widgets, &layout, &Object::from_value(failed));
    assert_eq!(tables.failing("widgets.x.dev"), [key("two", "c")]);
    assert!(tables.failing("gadgets.x.dev").is_empty());
}
