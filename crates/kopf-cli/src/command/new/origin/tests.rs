//! Tests that projects use the crate from the source of the installed command.

use super::Origin;

fn installed(source: &str) -> Option<Origin> {
    let list = format!(
        r#"{{"installs": {{"ripgrep 14.0.0 (registry+https://x)": {{}},
        "kopf-cli 0.1.0 ({source})": {{"bins": ["kopf"]}}}}}}"#
    );
    Origin::installed(&list)
}

#[test]
fn a_command_from_a_repository_makes_projects_with_its_commit() {
    let origin = installed("git+https://example.com/kopf?branch=main#0123abc").unwrap();
    let wanted = r#"git = "https://example.com/kopf", rev = "0123abc""#;
    assert_eq!(origin.dependency(), wanted);
    assert_eq!(origin.checkout(), None);
}

#[test]
fn a_command_from_the_registry_makes_projects_with_its_version() {
    let origin = installed("registry+https://example.com/index").unwrap();
    assert_eq!(origin, Origin::Registry);
    assert!(origin.dependency().starts_with("version = \"0."), "{}", origin.dependency());
}

#[test]
fn a_command_from_a_checkout_makes_projects_with_the_checkout() {
    let folder = tempfile::tempdir().unwrap();
    let crates = folder.path().join("crates");
    std::fs::create_dir_all(crates.join("kopf")).unwrap();
    std::fs::write(crates.join("kopf/Cargo.toml"), "").unwrap();
    let origin = installed(&format!("path+file://{}", crates.join("kopf-cli").display())).unwrap();
    assert_eq!(origin, Origin::Folder(crates.join("kopf")));
    assert_eq!(origin.checkout(), Some(folder.path()));
}

#[test]
fn lists_without_us_say_nothing() {
    assert_eq!(Origin::installed(r#"{"installs": {}}"#), None);
    assert_eq!(Origin::installed("no json"), None);
}
