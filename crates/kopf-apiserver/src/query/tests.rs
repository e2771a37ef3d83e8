//! Tests for query strings.

use super::{FieldValidation, Query, WriteOptions};

#[test]
fn empty_pairs_and_escapes_are_decoded() {
    let query = Query::parse("&labelSelector=a%3Db%2Cc+d&watch&&x=%zz");
    assert_eq!(query.text("labelSelector"), "a=b,c d");
    assert!(query.flag("watch"));
    assert_eq!(query.text("x"), "%zz");
}

#[test]
fn wrong_options_are_refused_in_upstream_words() {
    let error = WriteOptions::parse(&Query::parse("dryRun=Foo"), "CreateOptions").unwrap_err();
    assert_eq!(error.code, 422);
    assert_eq!(
        error.message,
        "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: \
         []string{\"Foo\"}: supported values: \"All\""
    );
    let options = WriteOptions::parse(&Query::parse("fieldValidation=Strict"), "CreateOptions");
    assert_eq!(options.unwrap().field_validation, FieldValidation::Strict);
}

#[test]
fn plus_is_a_space_in_queries_only() {
    assert_eq!(super::decode("a+b%2Bc"), "a b+c");
    assert_eq!(super::decode_path("a+b%2Bc%20d"), "a+b+c d");
}
