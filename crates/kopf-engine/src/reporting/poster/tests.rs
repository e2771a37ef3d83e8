use super::*;

#[test]
fn long_messages_are_truncated_in_the_middle() {
    let text: String = "a".repeat(600) + &"b".repeat(600);
    let cut = shortened(&text);
    assert_eq!(cut.chars().count(), 1024);
    assert!(cut.starts_with(&"a".repeat(511)) && cut.ends_with(&"b".repeat(510)));
    assert_eq!(shortened("short"), "short");
}

#[test]
fn whole_seconds_lose_the_fraction_only() {
    assert_eq!(whole_seconds("2026-11-15T18:53:43.155912+00:00"), "2026-11-15T18:53:43Z");
}

#[test]
fn references_omit_empty_fields() {
    let object = Object::from_value(json!({"kind": "Node", "metadata": {"name": "n"}}));
    assert_eq!(
        reference(&object, "default"),
        json!({"kind": "Node", "name": "n", "namespace": "default"})
    );
}

#[test]
fn only_events_of_kubernetes_have_no_events() {
    for (version, expected) in [("v1", true), ("events.k8s.io/v1", true), ("x.dev/v1", false)] {
        let object = Object::from_value(json!({"apiVersion": version, "kind": "Event"}));
        assert_eq!(is_event(&object), expected, "{version}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_rate_near_zero_is_an_endless_pause() {
    let cluster = Cluster::new(kopf_client::default_login(), kopf_client::Policy::default());
    let (_recorder, mut poster) = Recorder::new(cluster, Clock::default(), 1);
    poster.wait_for_token(1e-300).await;
    let waiting = poster.wait_for_token(1e-300);
    assert!(tokio::time::timeout(Duration::from_secs(86_400), waiting).await.is_err());
}
