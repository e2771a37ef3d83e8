use serde_json::json;

use super::*;

#[test]
fn an_unused_dependency_is_found() {
    let metadata = json!({"packages": [{
        "manifest_path": "/project/crates/a/Cargo.toml",
        "metadata": {"tidy": {"indirect": ["k8s-openapi"]}},
        "dependencies": [
            {"name": "serde-json"}, {"name": "http"}, {"name": "k8s-openapi"}, {"name": "bytes"}
        ]
    }]});
    let files = [
        ("crates/a/src/lib.rs".to_owned(), "use serde_json::Value; // http is not used".to_owned()),
        (
            "crates/a/tests/it.rs".to_owned(),
            "fn f(b: my_bytes::B) { bytes::Bytes::new() }".to_owned(),
        ),
        ("crates/b/src/lib.rs".to_owned(), "use http::Request;".to_owned()),
    ];
    let complaints = check(Path::new("/project"), &metadata, &files);
    assert_eq!(complaints, ["crates/a/Cargo.toml: the dependency `http` is not used"]);
}
