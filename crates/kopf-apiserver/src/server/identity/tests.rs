use std::os::unix::fs::PermissionsExt;

use super::*;

#[test]
fn an_identity_is_the_same_when_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let first = Identity::open(folder.path(), "secret".to_owned()).unwrap();
    let token = first.issuer.sign(&serde_json::json!({"sub": "a"}));
    let second = Identity::open(folder.path(), "other".to_owned()).unwrap();
    assert_eq!(second.admin_token, "secret");
    assert_eq!(second.authority.ca_pem(), first.authority.ca_pem());
    assert_eq!(second.authority.key_pem(), first.authority.key_pem());
    assert!(second.issuer.verify(&token).is_some());
}

#[test]
fn only_the_owner_can_read_it() {
    let folder = tempfile::tempdir().unwrap();
    Identity::open(folder.path(), "secret".to_owned()).unwrap();
    let mode = folder.path().join(FILE).metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, PRIVATE);
}

#[test]
fn a_broken_identity_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE);
    std::fs::write(&path, "{}").unwrap();
    assert!(Identity::open(folder.path(), "secret".to_owned()).is_err());
    assert_eq!(std::fs::read(&path).unwrap(), b"{}");
}
