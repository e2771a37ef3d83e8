//! Records of peers.

use std::time::Duration;

use serde_json::json;

use super::Peer;
use crate::record::parse_time;

#[test]
fn records_are_those_of_kopf() {
    let now = parse_time("2026-11-15T18:56:53.5Z").unwrap();
    let peer = Peer {
        identity: "root@vm/20261115185653/1rb".into(),
        priority: 0,
        lifetime: Duration::from_secs(8),
        lastseen: now,
    };
    let announcement = peer.announcement();
    assert_eq!(
        announcement.to_string(),
        concat!(
            r#"{"status":{"root@vm/20261115185653/1rb":{"priority":0,"lifetime":8,"#,
            r#""lastseen":"2026-11-15T18:56:53.500000+00:00"}}}"#
        )
    );
    assert_eq!(Peer::read_all(&announcement, now), std::slice::from_ref(&peer));
    assert!(!peer.is_dead(now + Duration::from_millis(7999)));
    assert!(peer.is_dead(now + Duration::from_secs(8)));
    assert_eq!(Peer::removal(["a", "b"]), json!({"status": {"a": null, "b": null}}));
}

#[test]
fn missing_fields_have_defaults() {
    let now = parse_time("2026-11-15T18:56:53Z").unwrap();
    let body = json!({"status": {"a": {}, "b": null, "c": {"lastseen": "2026-11-15T00:00:00"}}});
    let peers = Peer::read_all(&body, now);
    assert_eq!(peers.len(), 2);
    assert_eq!((peers[0].priority, peers[0].lifetime.as_secs(), peers[0].lastseen), (0, 60, now));
    assert!(peers[1].is_dead(now));
}
