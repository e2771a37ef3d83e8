//! Tests that only the latest events are shown, in order.

use expect_test::expect;
use serde_json::json;

use super::render;

#[test]
fn the_latest_warnings_are_reported_in_order() {
    let event = |second: u32| {
        json!({
            "lastTimestamp": format!("2026-11-15T12:00:0{second}Z"),
            "message": format!("Handler resize failed permanently: no. {second}"),
        })
    };
    let events: Vec<_> = [3, 1, 6, 2, 5, 4].into_iter().map(event).collect();
    expect![[r#"
        Database
          the latest warnings in the cluster:
            2026-11-15T12:00:02Z  Handler resize failed permanently: no. 2
            2026-11-15T12:00:03Z  Handler resize failed permanently: no. 3
            2026-11-15T12:00:04Z  Handler resize failed permanently: no. 4
            2026-11-15T12:00:05Z  Handler resize failed permanently: no. 5
            2026-11-15T12:00:06Z  Handler resize failed permanently: no. 6
    "#]]
    .assert_eq(&format!("Database{}", render(&events)));
    assert_eq!(render(&[]), "");
}
