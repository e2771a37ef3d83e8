//! Bodies of Kubernetes events.

use serde_json::{Value, json};

use super::{EventDraft, cut_message};
use crate::record::parse_time;

fn draft(about: &Value) -> EventDraft<'_> {
    EventDraft {
        about,
        kind: "Normal",
        reason: "Done",
        message: "text",
        reporting_component: "kopf",
        reporting_instance: "dev",
        name_prefix: "kopf-event-",
        default_namespace: "default",
        now: parse_time("2026-11-15T18:56:53Z").unwrap(),
    }
}

#[test]
fn bodies_are_those_of_kopf() {
    let about = json!({
        "apiVersion": "kopf.dev/v1", "kind": "KopfExample",
        "metadata": {"name": "x", "namespace": "ns", "uid": "u"},
    });
    assert_eq!(
        draft(&about).body().to_string(),
        concat!(
            r#"{"metadata":{"namespace":"ns","generateName":"kopf-event-"},"action":"Action?","#,
            r#""type":"Normal","reason":"Done","message":"text","reportingComponent":"kopf","#,
            r#""reportingInstance":"dev","source":{"component":"kopf"},"involvedObject":"#,
            r#"{"apiVersion":"kopf.dev/v1","kind":"KopfExample","name":"x","uid":"u","#,
            r#""namespace":"ns"},"firstTimestamp":"2026-11-15T18:56:53.000000+00:00","#,
            r#""lastTimestamp":"2026-11-15T18:56:53.000000+00:00","#,
            r#""eventTime":"2026-11-15T18:56:53.000000+00:00"}"#
        )
    );
}

#[test]
fn cluster_scoped_objects_have_their_events_in_the_default_namespace() {
    let about = json!({"metadata": {"name": "x"}});
    assert_eq!(draft(&about).namespace(), "default");
    assert_eq!(
        draft(&about).body()["involvedObject"],
        json!({"name": "x", "namespace": "default"})
    );
}

#[test]
fn events_about_events_are_recognised() {
    assert!(draft(&json!({"kind": "Event", "apiVersion": "v1"})).is_about_event());
    assert!(!draft(&json!({"kind": "Event", "apiVersion": "x.y/v1"})).is_about_event());
}

#[test]
fn long_messages_are_cut_in_the_middle() {
    let short = "ü".repeat(1024);
    assert_eq!(cut_message(&short), short);
    let long = "a".repeat(1000) + &"z".repeat(1000);
    assert_eq!(cut_message(&long), "a".repeat(511) + "..." + &"z".repeat(510));
}
