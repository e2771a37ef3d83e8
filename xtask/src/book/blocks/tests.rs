use std::collections::BTreeMap;

use super::check;

fn complaints(text: &str) -> Vec<String> {
    let pages = BTreeMap::from([("a.md".to_owned(), text.to_owned())]);
    check(&pages, "    A: \"b.md\",")
}

#[test]
fn uncompiled_rust_is_found() {
    let wanted = "docs/src/a.md:1: Rust that is not compiled: add the page to book.rs";
    assert_eq!(complaints("```rust\nfn main() {}\n```"), [wanted]);
    assert_eq!(complaints("```rust,ignore\nfn main() {}\n```").len(), 1);
    assert!(complaints("```rust,ignore\n{{#include main.rs}}\n```").is_empty());
}

#[test]
fn broken_data_is_found() {
    assert_eq!(complaints("text\n```yaml\na: [\n```").len(), 1);
    assert_eq!(complaints("```json\n{\"a\": }\n```").len(), 1);
    assert!(complaints("```yaml\na: 1\n---\nb: 2\n```").is_empty());
}

#[test]
fn python_without_the_package_is_found() {
    assert_eq!(complaints("```python\nprint(1)\n```").len(), 1);
    assert!(complaints("```python\nimport kopf\n```").is_empty());
}

#[test]
fn blocks_without_a_known_language_are_found() {
    assert_eq!(complaints("```\nx\n```").len(), 1);
    assert!(complaints("```console\n$ ls\n```").is_empty());
}
