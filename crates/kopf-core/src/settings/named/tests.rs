//! Settings by their dotted names.

use std::time::Duration;

use serde_json::json;

use crate::log_line::Level;
use crate::settings::Settings;

#[test]
fn settings_are_set_by_their_dotted_names() {
    let mut settings = Settings::default();
    let given = [
        ("process.ultimate_exiting_timeout", json!(null)),
        ("posting.level", json!(30)),
        ("posting.default_backoffs", json!(2.5)),
        ("peering.priority", json!(-3)),
        ("watching.server_timeout", json!(0.5)),
        ("queueing.error_delays", json!([1, 2])),
        ("persistence.finalizer", json!("a/b")),
        ("snapshots.file", json!("/var/lib/kopf/snapshot")),
        ("snapshots.interval", json!(5)),
        ("background.instant_exit_zero_time_cycles", json!(null)),
    ];
    for (name, value) in given {
        settings.set(name, &value).expect(name);
    }
    assert_eq!(settings.process.ultimate_exiting_timeout, None);
    assert_eq!(settings.posting.level, Level::Warning);
    assert_eq!(settings.posting.default_backoffs, [Duration::from_millis(2500)]);
    assert_eq!(settings.peering.priority, -3);
    assert_eq!(settings.watching.server_timeout, Some(Duration::from_millis(500)));
    assert_eq!(settings.queueing.error_delays, [1, 2].map(Duration::from_secs));
    assert_eq!(settings.persistence.finalizer, "a/b");
    assert_eq!(settings.snapshots.file, Some("/var/lib/kopf/snapshot".into()));
    assert_eq!(settings.snapshots.interval, Duration::from_secs(5));
    assert_eq!(settings.background.instant_exit_zero_time_cycles, 0);
}

#[test]
fn a_setting_that_does_not_exist_is_named() {
    let error = Settings::default().set("posting.speed", &json!(1)).expect_err("no such setting");
    assert_eq!(error.to_string(), "there is no setting \"posting.speed\"");
}

#[test]
fn a_value_of_another_type_is_refused() {
    let error = Settings::default().set("peering.stealth", &json!(1)).expect_err("not a flag");
    assert_eq!(error.to_string(), "settings.peering.stealth must be true or false, not 1");
}
