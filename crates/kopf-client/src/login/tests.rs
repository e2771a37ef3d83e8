use super::*;

#[tokio::test]
async fn explicit_values_become_a_configuration() {
    let info = ConnectionInfo {
        server: "https://localhost:6443".into(),
        token: Some("secret".into()),
        insecure: true,
        default_namespace: Some("team".into()),
        ..ConnectionInfo::default()
    };
    let config = info.to_config().await.expect("a configuration");
    assert_eq!(config.cluster_url, "https://localhost:6443");
    assert_eq!(config.default_namespace, "team");
    assert!(config.accept_invalid_certs);
    assert!(config.auth_info.token.is_some());
}

#[tokio::test]
async fn another_scheme_is_sent_unchanged() {
    let info = ConnectionInfo {
        server: "http://localhost".into(),
        scheme: Some("Negotiate".into()),
        token: Some("abc".into()),
        ..ConnectionInfo::default()
    };
    let config = info.to_config().await.expect("a configuration");
    assert!(config.auth_info.token.is_none());
    let (name, value) = &config.headers[0];
    assert_eq!((name.as_str(), value.to_str().ok()), ("authorization", Some("Negotiate abc")));
}

#[test]
fn pem_is_encoded_and_base64_is_kept() {
    assert_eq!(as_base64("-----BEGIN X"), "LS0tLS1CRUdJTiBY");
    assert_eq!(as_base64("LS0t\nLS1C"), "LS0tLS1C");
}

#[test]
fn secrets_are_not_printed() {
    let info = ConnectionInfo {
        server: "https://host".into(),
        token: Some("secret".into()),
        ..ConnectionInfo::default()
    };
    assert_eq!(format!("{info:?}"), "ConnectionInfo(https://host)");
}

#[test]
fn empty_names_are_skipped_and_the_home_folder_is_expanded() {
    let home = Path::new("/home/me");
    let files = |value: &str| named_files(OsStr::new(value), Some(home));
    assert_eq!(files(""), Vec::<PathBuf>::new());
    assert_eq!(files(" : "), Vec::<PathBuf>::new());
    let expected = ["/home/me/.kube/a", "/etc/b", "c~"].map(PathBuf::from);
    assert_eq!(files("~/.kube/a: /etc/b ::c~"), expected);
}
