//! Where requests go.

use http::{Request, Uri};
use kube::client::Body;

use super::addressed;

fn address(base: &str, path: &str) -> String {
    let base: Uri = base.parse().unwrap();
    let request = Request::builder().uri(path).body(Body::empty()).unwrap();
    addressed(&base)(request).uri().to_string()
}

#[test]
fn requests_go_to_the_cluster_below_its_path() {
    for (base, path, expected) in [
        (
            "https://10.0.0.1:6443",
            "/api/v1/pods?limit=5",
            "https://10.0.0.1:6443/api/v1/pods?limit=5",
        ),
        ("https://10.0.0.1:6443/", "/api", "https://10.0.0.1:6443/api"),
        ("http://[::1]:80", "/version", "http://[::1]:80/version"),
        (
            "https://host/k8s/clusters/c-1",
            "/api/v1?x=%2F",
            "https://host/k8s/clusters/c-1/api/v1?x=%2F",
        ),
        ("https://host/k8s/", "/api", "https://host/k8s/api"),
    ] {
        assert_eq!(address(base, path), expected);
    }
}
