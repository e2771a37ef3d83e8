//! Mistakes in handlers: each is told in one sentence, at the token that is wrong.

/// `TRYBUILD=overwrite cargo test -p kopf --test it mistakes` writes the expected texts anew.
#[test]
fn mistakes_are_told_in_one_sentence() {
    trybuild::TestCases::new().compile_fail("tests/compile-fail/*.rs");
}
