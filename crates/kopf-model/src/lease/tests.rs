use super::*;

#[test]
fn a_record_reads_as_it_was_written() {
    let record = LeaseRecord {
        holder: "pod-a_1".into(),
        duration: Some(Duration::from_secs(15)),
        acquired: "2026-11-17T19:00:00.123456Z".parse().ok(),
        renewed: "2026-11-17T19:00:02Z".parse().ok(),
        transitions: 3,
    };
    let spec = record.spec();
    assert_eq!(spec["renewTime"], "2026-11-17T19:00:02.000000Z");
    assert_eq!(LeaseRecord::read(&json!({"spec": spec})), record);
}

#[test]
fn a_lease_of_client_go_is_parsed() {
    let body = json!({"spec": {
        "holderIdentity": "node-1_9f5c", "leaseDurationSeconds": 15,
        "acquireTime": "2026-05-01T10:00:00.000000Z",
        "renewTime": "2026-05-01T10:01:00.000000Z", "leaseTransitions": 7,
    }});
    let record = LeaseRecord::read(&body);
    assert_eq!((record.holder.as_str(), record.transitions), ("node-1_9f5c", 7));
    assert_eq!(record.duration, Some(Duration::from_secs(15)));
}

#[test]
fn an_empty_lease_has_no_holder() {
    assert_eq!(LeaseRecord::read(&json!({})), LeaseRecord::default());
}

#[test]
fn durations_are_whole_seconds_and_never_zero() {
    let record = LeaseRecord { duration: Some(Duration::from_millis(1500)), ..Default::default() };
    assert_eq!(record.spec()["leaseDurationSeconds"], 2);
    let record = LeaseRecord { duration: Some(Duration::ZERO), ..LeaseRecord::default() };
    assert_eq!(record.spec()["leaseDurationSeconds"], 1);
}
