use super::*;
use crate::login::default_login;
use crate::policy::Policy;

fn pause_after(limits: WatchLimits, failures: u32) -> Duration {
    let collection = Collection {
        resource: Arc::new(Resource::cluster_wide("", "namespaces", "Namespace")),
        namespace: None,
        label_selector: None,
        field_selector: None,
        shard_selector: None,
        part: None,
        limits,
        managed_fields: false,
        backlog: None,
    };
    let cluster = Cluster::new(default_login(), Policy::default());
    Watcher::new(cluster, collection, (), mpsc::channel(1).0).pause_after(failures)
}

#[test]
fn pauses_grow_to_their_limit() {
    let limits = WatchLimits::default;
    assert!(pause_after(limits(), 1) <= limits().backoff.mul_f64(1.25));
    assert!(pause_after(limits(), 1000) >= limits().backoff_max.mul_f64(0.75));
    assert!(pause_after(limits(), 1000) <= limits().backoff_max.mul_f64(1.25));
}

#[test]
fn pauses_may_be_of_any_length() {
    for backoff in [Duration::MAX, Duration::MAX / 2, Duration::from_secs(u64::MAX / 1000)] {
        let limits = WatchLimits { backoff, backoff_max: Duration::MAX, ..WatchLimits::default() };
        for _ in 0..20 {
            assert!(pause_after(limits.clone(), 5) >= backoff / 2);
        }
    }
}
