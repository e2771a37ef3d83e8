//! Updates that a real server rejected, checked with our rules.

use serde_json::{Value, json};

use super::{Nothing, Recorded, causes, resource, without_addresses};
use crate::{KindContext, SequentialIds, strategy_for};
use kopf_apimachinery::StatusError;

/// An update of an object or its status, and why it was rejected.
struct Refused {
    recorded: Recorded,
    subresource: String,
    old: Value,
    new: Value,
    causes: Value,
}

fn recordings() -> Vec<Refused> {
    let lines = include_str!("../recorded_updates.jsonl").lines();
    let parse = |line: &str| {
        let value: Value = serde_json::from_str(line).expect("a recording is JSON");
        let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
        let recorded = Recorded {
            version: text("version"),
            resource: text("resource"),
            namespaced: value["namespaced"] == true,
            body: Value::Null,
            status: 422,
            response: Value::Null,
        };
        Refused {
            recorded,
            subresource: text("subresource"),
            old: value["old"].clone(),
            new: value["new"].clone(),
            causes: value["causes"].clone(),
        }
    };
    lines.map(parse).collect()
}

#[test]
fn refused_updates_are_refused_with_the_same_causes() {
    let mut failures = Vec::new();
    for refused in recordings() {
        let mut info = resource(&refused.recorded);
        info.kind = refused.old["kind"].as_str().unwrap_or_default().to_owned();
        let ids = SequentialIds::default();
        let context = KindContext {
            resource: &info,
            subresource: &refused.subresource,
            objects: &Nothing,
            now: jiff::Timestamp::UNIX_EPOCH,
            ids: &ids,
            is_dry_run: false,
        };
        let strategy = strategy_for(&info);
        let (mut old, mut new) = (refused.old.clone(), refused.new.clone());
        strategy.default(&context, &mut old);
        strategy.default(&context, &mut new);
        strategy.prepare_update(&context, &mut new, &old);
        let problems = strategy.validate_update(&context, &new, &old);
        let found = StatusError::invalid(&info.group, &info.kind, "", &problems).to_value();
        let expected = json!({"details": {"causes": refused.causes}});
        let found = causes(&without_addresses(&found));
        let expected = causes(&without_addresses(&expected));
        if found != expected {
            failures.push(format!(
                "{}/{}\n  found    {found:?}\n  expected {expected:?}",
                refused.recorded.resource, refused.subresource
            ));
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}
