use super::*;

fn files(texts: &[(&str, &str)]) -> Vec<(String, String)> {
    texts.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
}

#[test]
fn a_planted_cycle_is_found() {
    let files = files(&[
        ("crates/a/src/lib.rs", "mod one; mod two; mod three;\npub use two::{Thing, Other};"),
        ("crates/a/src/one.rs", "use crate::{Thing, three::{self, X}};"),
        ("crates/a/src/two.rs", "//! Not crate::three.\n"),
        ("crates/a/src/two/inner.rs", "fn f() { crate::one::g() }"),
        ("crates/a/src/two/tests.rs", "use crate::three;"),
        ("crates/a/src/three.rs", ""),
    ]);
    assert_eq!(crates(&files).into_iter().collect::<Vec<_>>(), ["a"]);
    let graph = graph("a", &files);
    let cycles = cycles(&graph);
    assert_eq!(cycles.len(), 1, "{graph:?}");
    assert_eq!(cycles[0].iter().collect::<Vec<_>>(), ["one", "two"]);
}

#[test]
fn known_cycles_may_shrink_but_not_grow() {
    let known = parse("# Known.\na: one two three\n");
    let group = |modules: &str| parse(&format!("a: {modules}"));
    assert!(compare(&known, &group("one two three")).is_empty());
    let grown = compare(&known, &group("four one two three"));
    assert!(grown[0].contains("four, one, three, two"), "{grown:?}");
    let shrunk = compare(&known, &group("one two"));
    assert_eq!(shrunk.len(), 1);
    assert!(shrunk[0].contains("update the line"), "{shrunk:?}");
}
