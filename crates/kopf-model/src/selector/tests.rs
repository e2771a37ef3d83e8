//! Forms of selectors, and the resources they select.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Criteria, Selected, SelectorError};
use crate::resource::{Resource, Selector, SelectorName};

fn resource(group: &str, version: &str, plural: &str, kind: &str) -> Resource {
    Resource {
        group: group.into(),
        version: version.into(),
        plural: plural.into(),
        kind: kind.into(),
        singular: kind.to_lowercase(),
        shortcuts: BTreeSet::from([plural[..1].to_owned()]),
        categories: BTreeSet::from(["all".to_owned()]),
        subresources: BTreeSet::new(),
        namespaced: true,
        preferred: true,
        verbs: BTreeSet::new(),
    }
}

#[track_caller]
fn check(arguments: &[&str], expected: &str) {
    assert_eq!(Selector::parse(arguments).unwrap().to_string(), expected, "{arguments:?}");
}

#[test]
fn all_positional_forms_are_understood() {
    check(&["kopfexamples"], "*/*/kopfexamples");
    check(&["kopfexamples.kopf.dev"], "kopf.dev/*/kopfexamples");
    check(&["pods.v1"], "*/v1/pods");
    check(&["kex.v1alpha1.kopf.dev"], "kopf.dev/v1alpha1/kex");
    check(&["kex.v1gamma.kopf.dev"], "v1gamma.kopf.dev/*/kex");
    check(&["kopf.dev", "kex"], "kopf.dev/*/kex");
    check(&["kopf.dev/v1", "kex"], "kopf.dev/v1/kex");
    check(&["v1", "pods"], "v1/pods");
    check(&["kopf.dev", "v1", "kex"], "kopf.dev/v1/kex");
    check(&["", "v1", "pods"], "v1/pods");
    check(&["*"], "*/*/*");
    check(&["kopf.dev", "v1", "*"], "kopf.dev/v1/*");
}

#[test]
fn invalid_forms_are_rejected() {
    assert_eq!(Selector::parse(&[]).unwrap_err(), SelectorError::Nameless);
    assert_eq!(Selector::parse(&["a", "b", "c", "d"]).unwrap_err(), SelectorError::TooMany(4));
    assert_eq!(Selector::parse(&[""]).unwrap_err(), SelectorError::EmptyName);
    let none = Selector::from_criteria(Criteria { group: Some("g".into()), ..Criteria::default() });
    assert_eq!(none.unwrap_err(), SelectorError::Nameless);
    let (kind, plural) = (Some("K".into()), Some("ks".into()));
    let two = Selector::from_criteria(Criteria { kind, plural, ..Criteria::default() });
    assert_eq!(two.unwrap_err(), SelectorError::SeveralNames("kind, plural".into()));
    let empty = Criteria { category: Some(String::new()), ..Criteria::default() };
    assert_eq!(Selector::from_criteria(empty).unwrap_err(), SelectorError::EmptyName);
}

#[test]
fn any_name_matches_and_named_criteria_match_only_their_own() {
    let pods = resource("", "v1", "pods", "Pod");
    for name in ["pods", "Pod", "pod", "p"] {
        assert!(Selector::parse(&[name]).unwrap().matches(&pods), "{name}");
    }
    let kind = |name: &str| {
        let criteria = Criteria { kind: Some(name.into()), ..Criteria::default() };
        Selector::from_criteria(criteria).unwrap().matches(&pods)
    };
    assert!(kind("Pod") && !kind("pods"));
    assert!(Selector::exact("", "v1", "pods").matches(&pods));
    assert!(!Selector::exact("", "v2", "pods").matches(&pods));
}

#[test]
fn only_preferred_versions_match_unless_the_version_is_given() {
    let mut old = resource("apps", "v1beta1", "deployments", "Deployment");
    old.preferred = false;
    assert!(!Selector::parse(&["deployments"]).unwrap().matches(&old));
    assert!(Selector::parse(&["apps/v1beta1", "deployments"]).unwrap().matches(&old));
    let function = SelectorName::Matching(Arc::new(|_| Ok(true)));
    assert!(Selector { name: function, ..Selector::default() }.matches(&old));
}

#[test]
fn events_are_never_part_of_everything() {
    for group in ["", "events.k8s.io"] {
        let events = resource(group, "v1", "events", "Event");
        assert!(!Selector::everything().matches(&events));
        let function = SelectorName::Matching(Arc::new(|_| Ok(true)));
        assert!(!Selector { name: function, ..Selector::default() }.matches(&events));
        assert!(Selector::parse(&["events"]).unwrap().matches(&events));
    }
    assert!(Selector::everything().matches(&resource("x.y", "v1", "events", "Event")));
}

#[test]
fn the_core_group_wins_and_real_ambiguity_is_reported() {
    let list = |groups: &[&str]| -> Vec<_> {
        groups.iter().map(|group| Arc::new(resource(group, "v1", "pods", "Pod"))).collect()
    };
    let select = |arguments: &[&str], groups: &[&str]| {
        Selector::parse(arguments).unwrap().select(&list(groups))
    };
    assert_eq!(select(&["pods"], &["", "metrics.k8s.io"]), Selected::Resources(list(&[""])));
    assert_eq!(select(&["pods"], &["a.b", "c.d"]), Selected::Ambiguous(list(&["a.b", "c.d"])));
    assert_eq!(select(&["pods.c.d"], &["a.b", "c.d"]), Selected::Resources(list(&["c.d"])));
    assert_eq!(select(&["*"], &["", "c.d"]), Selected::Resources(list(&["", "c.d"])));
    assert_eq!(select(&["nodes"], &[""]), Selected::Resources(vec![]));
}
