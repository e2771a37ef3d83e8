use std::collections::BTreeMap;

use super::{anchor, check, joined, targets};

fn pages(texts: &[(&str, &str)]) -> BTreeMap<String, String> {
    texts.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

#[test]
fn links_to_nowhere_are_found() {
    let folder = std::env::temp_dir().join(format!("kopf-links-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("deep")).unwrap();
    for name in ["SUMMARY.md", "a.md", "deep/b.md"] {
        std::fs::write(folder.join(name), "").unwrap();
    }
    let pages = pages(&[
        ("SUMMARY.md", "- [a](a.md)\n- [b](deep/b.md)"),
        ("a.md", "# One\n## Two `words`\n[x](deep/b.md#there) [y](gone.md) [z](#two-words)"),
        ("deep/b.md", "# There\n[x](../a.md#two-words) [y](../a.md#three)"),
    ]);
    let complaints = check(&pages, &folder);
    std::fs::remove_dir_all(&folder).unwrap();
    let wanted = [
        "docs/src/a.md:3: `gone.md` leads nowhere",
        "docs/src/deep/b.md:2: `../a.md#three`: there is no such heading",
    ];
    assert_eq!(complaints, wanted);
}

#[test]
fn code_is_not_searched_for_links() {
    assert_eq!(targets("`[a](b)`\n```\n[c](d)\n```\n[e](f)"), [(5, "f".to_owned())]);
}

#[test]
fn included_files_must_exist_too() {
    assert_eq!(targets("```rust\n{{#include ../a.rs}}\n```"), [(2, "../a.rs".to_owned())]);
}

#[test]
fn anchors_and_paths_are_those_of_mdbook() {
    assert_eq!(anchor("`kopf dev`, and more"), "kopf-dev-and-more");
    assert_eq!(joined("a/b.md", "../c/d.md"), "c/d.md");
}
