//! CertificateSigningRequests: the server, not the client, sets the requester.

use serde_json::{Value, json};

use super::KindContext;
use super::fields::object_mut;
use crate::User;

/// The table of requests.
pub const CERTIFICATE_REQUESTS: &str = "certificatesigningrequests.certificates.k8s.io";

/// Replaces the requester sent by the client with the actual user.
pub fn name_requester(object: &mut Value, user: &User) {
    let Some(spec) = object_mut(object, "spec").and_then(Value::as_object_mut) else { return };
    for key in ["username", "uid", "groups", "extra"] {
        spec.shift_remove(key);
    }
    spec.insert("username".into(), json!(user.name));
    if !user.uid.is_empty() {
        spec.insert("uid".into(), json!(user.uid));
    }
    if !user.groups.is_empty() {
        spec.insert("groups".into(), json!(user.groups));
    }
    if !user.extra.is_empty() {
        spec.insert("extra".into(), json!(user.extra));
    }
}

/// Updates never change the request itself.
pub(super) fn prepare_update(_: &KindContext<'_>, object: &mut Value, old: &Value) {
    object["spec"] = old["spec"].clone();
}
