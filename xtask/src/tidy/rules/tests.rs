//! Tests that each rule reports its violations, and nothing else.

use super::check;

fn complaints(path: &str, text: &str) -> usize {
    check(path, text).len()
}

#[test]
fn a_tidy_file_is_left_alone() {
    assert_eq!(complaints("crates/a/src/b.rs", "//! What it owns.\n\nfn a() {}\n"), 0);
}

#[test]
fn a_missing_header_is_found() {
    assert_eq!(complaints("crates/a/src/b.rs", "fn a() {}\n"), 1);
}

#[test]
fn long_files_are_found_unless_they_are_tests() {
    let text = format!("//! Header.\n{}", "fn a() {}\n".repeat(700));
    assert_eq!(complaints("crates/a/src/b.rs", &text), 1);
    assert_eq!(complaints("crates/a/tests/it/b.rs", &text), 0);
}

#[test]
fn anyhow_is_for_the_edge_only() {
    let text = "//! Header.\nuse anyhow::Result;\n";
    assert_eq!(complaints("crates/kopf-core/src/b.rs", text), 1);
    assert_eq!(complaints("crates/kopf-cli/src/b.rs", text), 0);
}

#[test]
fn versions_outside_the_root_manifest_are_found() {
    let text = "[package]\nversion = \"1\"\n[dependencies]\nserde = \"1\"\nkopf.workspace = true\n";
    assert_eq!(complaints("crates/a/Cargo.toml", text), 1);
}

#[test]
fn machine_paths_are_found() {
    assert_eq!(complaints("a.md", concat!("see /wo", "rk/main/x")), 1);
    assert_eq!(complaints("a.md", concat!("see docs/wo", "rk/main")), 0);
}
