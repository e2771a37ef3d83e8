//! Tests that the operator is found with the kubeconfig.

use std::os::unix::fs::PermissionsExt as _;

use kube::config::Kubeconfig;

use super::{operator_url, write};

const TEXT: &str = "apiVersion: v1\nkind: Config\nclusters:\n- name: kopf\n  cluster:\n    server: \
    https://127.0.0.1:1\nusers:\n- name: admin\n  user:\n    token: x\ncontexts:\n- name: kopf\n  \
    context:\n    cluster: kopf\n    user: admin\ncurrent-context: kopf\n";

#[test]
fn the_operator_is_found_by_the_kubeconfig() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    write(&path, TEXT, Some("127.0.0.1:8080".parse().unwrap())).unwrap();
    let config = Kubeconfig::read_from(&path).unwrap();
    assert_eq!(operator_url(&config, None).as_deref(), Some("http://127.0.0.1:8080"));
    assert_eq!(operator_url(&config, Some("other")), None);
    let mode = path.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "a token is nobody else's business");
}

#[test]
fn a_cluster_without_an_operator_names_none() {
    let config = Kubeconfig::from_yaml(TEXT).unwrap();
    assert_eq!(operator_url(&config, None), None);
}
