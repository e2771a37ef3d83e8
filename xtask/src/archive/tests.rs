use super::{file_name, package};

#[test]
fn the_archive_has_the_name_that_binstall_looks_for() {
    let package = package().expect("the package");
    let name = file_name(&package, "x86_64-unknown-linux-gnu").expect("a name");
    assert_eq!(name, "kopf-cli-x86_64-unknown-linux-gnu.tgz");
}

#[test]
fn a_variable_that_is_not_known_is_an_error() {
    let mut package = package().expect("the package");
    package["metadata"]["binstall"]["pkg-url"] = "https://example.com/{ libc }.tgz".into();
    assert!(file_name(&package, "x86_64-unknown-linux-gnu").is_err());
}
