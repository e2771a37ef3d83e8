//! Mistakes in handlers: the compiler explains each in one sentence, at the wrong token.

/// `TRYBUILD=overwrite cargo test -p kopf --test it mistakes` rewrites the expected messages.
#[test]
fn mistakes_are_reported_in_one_sentence() {
    trybuild::TestCases::new().compile_fail("tests/compile-fail/*/*.rs");
}
