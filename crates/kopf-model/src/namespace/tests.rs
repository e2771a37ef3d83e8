//! Patterns and the namespaces that they match.

use super::NamespacePattern;

#[track_caller]
fn check(pattern: &str, matching: &[&str], other: &[&str]) {
    let pattern = NamespacePattern::globs(pattern).unwrap();
    for name in matching {
        assert!(pattern.matches(name), "{pattern} should match {name}");
    }
    for name in other {
        assert!(!pattern.matches(name), "{pattern} should not match {name}");
    }
}

#[test]
fn globs_match_whole_names() {
    check("ns", &["ns"], &["ns1", "ans", "NS"]);
    check("ns-*", &["ns-", "ns-a"], &["ns", "xns-a"]);
    check("n?", &["ns"], &["n", "nss"]);
    check("n[abx-z]", &["na", "ny"], &["nc", "n"]);
    check("n[!ab]", &["nc"], &["na"]);
    check("n[", &["n["], &["n"]);
    check("n.s", &["n.s"], &["nxs"]);
}

#[test]
fn negations_exclude_and_later_globs_stay_inside_the_first() {
    check("prod-*, !prod-test-*", &["prod-a"], &["prod-test-1", "dev"]);
    check("!secret", &["anything"], &["secret"]);
    check("a*,!ab*,abc", &["a", "abc"], &["abd", "b"]);
    check("a*,!ab*,xyz", &["a"], &["xyz"]);
}

#[test]
fn regular_expressions_match_whole_names() {
    let pattern = NamespacePattern::regex("prod|dev-[0-9]+").unwrap();
    assert!(pattern.matches("prod") && pattern.matches("dev-12"));
    assert!(!pattern.matches("production") && !pattern.matches("dev-"));
    assert!(NamespacePattern::regex("(").is_err());
}

#[test]
fn only_plain_names_are_exact() {
    let exact = |text| NamespacePattern::globs(text).unwrap().exact_name().map(str::to_owned);
    assert_eq!(exact(" ns "), Some("ns".into()));
    for text in ["n*", "n?", "!n", "a,b"] {
        assert_eq!(exact(text), None);
    }
    assert!(NamespacePattern::regex("ns").unwrap().exact_name().is_none());
}
