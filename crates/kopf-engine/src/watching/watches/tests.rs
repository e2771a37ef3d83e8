//! When a known resource has to be watched again.

use super::*;

#[test]
fn a_resource_with_other_properties_is_watched_again() {
    let known = || Resource::cluster_wide("kopf.dev", "kopfexamples", "KopfExample");
    let changes: [fn(&mut Resource); 4] = [
        |it| it.namespaced = true,
        |it| it.kind = "Other".into(),
        |it| it.subresources = ["status".into()].into(),
        |it| it.verbs = ["patch".into()].into(),
    ];
    assert!(!is_redefined(&known(), &known()));
    for change in changes {
        let mut changed = known();
        change(&mut changed);
        assert!(is_redefined(&known(), &changed), "{changed:?}");
    }
}
