//! Tests of `shardSelector`.

use super::ShardSelector;

const HALF: &str = "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')";

fn problem(text: &str) -> String {
    ShardSelector::parse(text).expect_err(text)
}

#[test]
fn the_selector_is_repeated_in_its_canonical_form() {
    let rest = "shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')";
    let both = format!("{HALF} || {rest}");
    assert_eq!(ShardSelector::parse(&both).unwrap().canonical().unwrap(), both);
    let close = "  shardRange( object.metadata.uid ,'0x0000000000000000','0x8000000000000000' ) ";
    assert_eq!(ShardSelector::parse(close).unwrap().canonical().unwrap(), HALF);
    assert!(ShardSelector::parse("").unwrap().canonical().is_none());
}

#[test]
fn every_object_is_in_one_half() {
    let rest = "shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')";
    let halves = [ShardSelector::parse(HALF).unwrap(), ShardSelector::parse(rest).unwrap()];
    let mut counts = [0, 0];
    for number in 0..1000_u64 {
        let uid = format!("{:016x}-4000-8000-{number:012x}", number * 0x9e37_79b9_7f4a_u64);
        let owner = r#"[{"uid":"other"}]"#;
        let text = format!(
            r#"{{"spec":{{"uid":"no"}},"metadata":{{"ownerReferences":{owner},"uid":"{uid}"}}}}"#
        );
        let found = halves.each_ref().map(|it| it.matches(text.as_bytes()));
        assert!(found[0] != found[1], "{text}");
        counts[usize::from(found[1])] += 1;
    }
    assert!(counts.iter().all(|it| (400..600).contains(it)), "{counts:?}");
    // The hash of an empty text is the offset basis of FNV-1a: 0xcbf29ce484222325.
    let by_namespace = HALF.replace("uid", "namespace");
    let cluster_scoped = br#"{"metadata":{"uid":"x"}}"#;
    assert!(!ShardSelector::parse(&by_namespace).unwrap().matches(cluster_scoped));
}

#[test]
fn errors_have_the_texts_of_kubernetes() {
    let range = |path: &str, start: &str, end: &str| format!("shardRange({path}, {start}, {end})");
    let uid = "object.metadata.uid";
    let (low, high) = ("'0x0000000000000000'", "'0x8000000000000000'");
    let cases = [
        (
            " ".to_owned(),
            "empty shard selector is not allowed; omit the parameter for unfiltered lists",
        ),
        (
            range(uid, "'0x0'", high),
            "hexStart must be a 0x-prefixed 16-digit hex value, got \"0x0\" (did you mean \"0x0000000000000000\"?)",
        ),
        (range(uid, low, "'80'"), "hexEnd must have '0x' prefix, got \"80\""),
        (range(uid, "'0x'", high), "hexStart: hex value is required after '0x'"),
        (range(uid, "'0x0g'", high), "hexStart: invalid hex character \"g\" in \"0x0g\""),
        (
            range(uid, low, "'0x20000000000000000'"),
            "hexEnd: 17-digit hex value must be '0x10000000000000000' (2^64), got \"0x20000000000000000\"",
        ),
        (
            range(uid, high, low),
            "shard range start 0x8000000000000000 must be less than end 0x0000000000000000",
        ),
        (range(uid, "0", "8"), "hexStart must be a string literal, got int64"),
        (
            range("object.metadata.name", low, high),
            "unsupported field path \"object.metadata.name\"; supported: object.metadata.uid, object.metadata.namespace",
        ),
        (format!("shardRange({uid}, {low})"), "shardRange() requires exactly 3 arguments, got 2"),
        (
            format!("{HALF} && {HALF}"),
            "unsupported function \"_&&_\"; only shardRange() and || are allowed",
        ),
        (uid.to_owned(), "unexpected expression kind 7; expected shardRange() call or || operator"),
        (
            format!("{HALF} || {}", HALF.replace("uid", "namespace")),
            "all shard ranges must use the same field, got \"object.metadata.uid\" and \"object.metadata.namespace\"",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(problem(&text), format!("invalid shard selector: {expected}"));
    }
    assert!(problem("shardRange(").starts_with("invalid shard selector: CEL parse error: "));
    assert!(problem(&"(".repeat(10_000)).contains("recursion limit"));
}
