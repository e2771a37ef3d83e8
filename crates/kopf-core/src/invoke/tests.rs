use super::*;

#[test]
fn reasons_to_stop_are_shown_by_name() {
    let both = StopReason::DAEMON_SIGNALLED.and(StopReason::RESOURCE_DELETED);
    assert_eq!(format!("{both:?}"), "RESOURCE_DELETED|DAEMON_SIGNALLED");
    assert_eq!(format!("{:?}", StopReason::default()), "NONE");
}
