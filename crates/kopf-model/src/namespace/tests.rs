use super::*;

fn check(pattern: &str, matching: &[&str], others: &[&str]) {
    let pattern = NamespacePattern::new(pattern);
    for name in matching {
        assert!(pattern.matches(name), "{pattern} must match {name}");
    }
    for name in others {
        assert!(!pattern.matches(name), "{pattern} must not match {name}");
    }
}

#[test]
fn globs_match_whole_names() {
    check("default", &["default"], &["default2", "xdefault", ""]);
    check("team-*", &["team-", "team-a"], &["steam-a"]);
    check("ns?", &["ns1"], &["ns", "ns12"]);
    check("ns[0-4a]", &["ns3", "nsa"], &["ns5", "nsb"]);
    check("ns[!0-4]", &["ns5"], &["ns3"]);
    check("", &[], &["a"]);
    check(", a", &[], &["a"]);
}

#[test]
fn later_globs_narrow_and_widen_within_the_first() {
    check("myapp-*, !*-pr-*, myapp-pr-123", &["myapp-live", "myapp-pr-123"], &["myapp-pr-9", "x"]);
    check("!kube-*", &["default"], &["kube-system"]);
    check("a, b", &["a"], &["b"]);
}

#[test]
fn only_plain_names_are_exact() {
    assert_eq!(NamespacePattern::new(" default ").exact(), Some("default"));
    for text in ["a*", "!a", "a,b", "a?", "[a]", ""] {
        assert_eq!(NamespacePattern::new(text).exact(), None, "{text}");
    }
}

#[test]
fn regular_expressions_match_whole_names() {
    let pattern = NamespacePattern::regex(r"team-\d+|x").expect("an expression");
    assert!(pattern.matches("team-12") && pattern.matches("x"));
    assert!(!pattern.matches("team-12b") && !pattern.matches("ax"));
    assert_eq!(NamespacePattern::regex("x").expect("an expression").exact(), None);
    let error = NamespacePattern::regex("team-(").expect_err("malformed");
    assert_eq!(error.to_string(), "`team-(` is not a valid namespace pattern");
}
