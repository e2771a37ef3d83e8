use super::depth;

#[test]
fn brackets_chains_and_conditions_nest() {
    let sources = ["(((((1)))))", "[[[[[1]]]]]", "1 + 1 + 1 + 1 + 1 + 1", "a.b.c.d.e.f"];
    for source in sources.into_iter().chain(["a ? b : c ? d : e ? f : g ? h : i ? j : k"]) {
        assert!((6..9).contains(&depth(source)), "{source}: {}", depth(source));
    }
    assert!(depth("a in b in c in d in e in f") >= 6);
    assert!(depth("a[0][0][0][0][0]") >= 6);
    assert!(depth("a().b().c().d().e()") >= 6);
}

#[test]
fn rules_as_people_write_them_are_flat() {
    let logic = "self.a.b == 'c' && (self.d || !self.e) && ".repeat(50) + "true";
    assert!(depth(&logic) < 10, "{}", depth(&logic));
    let calls = "size(self.a.b) <= 10, ".repeat(50);
    assert!(depth(&calls) < 10, "{}", depth(&calls));
    assert!(depth("!!!!!!!!!!!!!!!!!!!!true") < 5);
}

#[test]
fn strings_and_comments_do_not_count() {
    for source in [
        r#"self.matches("((((((((((\n\"))))..........")"#,
        r"self.matches('((((((((((\'\\')",
        r"self.matches(r'((((((((((\')",
        "self.matches('''((((((\n((((')",
        "self == \"\"\"((((((\n((((\"\"\"",
        "self // ((((((((((\n == 1",
    ] {
        let open = if source.contains("'''") { 20 } else { 6 };
        assert!(depth(source) < open, "{source}: {}", depth(source));
    }
}

#[test]
fn what_only_looks_like_a_string_counts() {
    // The lexer rejects each of these quotes and continues with the code after it.
    for source in [
        r"'\q((((((((((((((((((((",
        "'\n((((((((((((((((((((' ",
        "\"((((((((((((((((((((",
        r"xr'\q(((((((((((((((((((('",
        "'''((((((((((((((((((((",
    ] {
        assert!(depth(source) > 20, "{source}: {}", depth(source));
    }
}
