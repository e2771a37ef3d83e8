//! Tests that every document is read before any is sent, and that errors name their location.

use expect_test::{Expect, expect};

use super::{parse, readable};

fn check_error(text: &str, expected: Expect) {
    let error = parse("a.yaml", text).unwrap_err();
    let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
    expected.assert_eq(&format!("{error}{}", cause.unwrap_or_default()));
}

#[test]
fn several_documents_and_lists_are_read() {
    let text = "
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
---
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}
";
    let documents = parse("a.yaml", text).unwrap();
    let names: Vec<&str> =
        documents.iter().filter_map(|it| it.manifest["metadata"]["name"].as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
}

#[test]
fn broken_yaml_is_named_with_line_and_column() {
    check_error(
        "apiVersion: v1\nkind: [",
        expect![
            "`a.yaml` is not valid YAML: did not find expected node content at line 3 column 1, while parsing a flow node"
        ],
    );
}

#[test]
fn a_manifest_without_a_kind_is_named() {
    check_error(
        "apiVersion: v1\nmetadata: {name: a}",
        expect!["document 1 of `a.yaml` has no `kind`"],
    );
}

#[test]
fn a_manifest_without_a_name_is_named() {
    check_error(
        "apiVersion: v1\nkind: Pod",
        expect!["document 1 of `a.yaml` has no `metadata.name`"],
    );
}

#[test]
fn messages_of_the_server_show_values_as_users_write_them() {
    let of =
        |value: &str| format!("(/a; v1, Kind=Greeting): .spec.name: expected string, got {value}");
    for (go, shown) in [
        ("&value.valueUnstructured{Value:5}", "5"),
        ("&value.valueUnstructured{Value:map[a:{1}]}\n", "map[a:{1}]"),
        ("string", "string"),
        ("&value.valueUnstructured{Value:5", "&value.valueUnstructured{Value:5"),
    ] {
        assert_eq!(readable(&of(go)), of(shown));
    }
    let two = "&value.valueUnstructured{Value:1} and &value.valueUnstructured{Value:true}";
    assert_eq!(readable(two), "1 and true");
}
