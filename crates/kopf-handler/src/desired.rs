//! Desired children: the result of a `desired` function.

use kopf_core::Output;
use serde::Serialize;
use serde_json::Value;

use crate::error::Error;
use crate::kind::Desired;
use crate::outcome::Outcome;

/// One child that an object should have: any typed resource, or JSON with `apiVersion` and `kind`.
///
/// The name and the namespace are the owner's unless given. The engine adds the labels, annotations
/// and owner reference that make it a child.
///
/// ```
/// # use k8s_openapi::api::core::v1::Service;
/// let typed: kopf_handler::Child = Service::default().into();
/// let dynamic: kopf_handler::Child =
///     serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"key": "value"}}).into();
/// assert_eq!(typed.manifest().unwrap()["kind"], "Service");
/// assert_eq!(dynamic.manifest().unwrap()["data"]["key"], "value");
/// ```
#[derive(Debug)]
pub struct Child(Result<Value, serde_json::Error>);

impl Child {
    /// The manifest as given.
    ///
    /// # Errors
    /// Fails if the object cannot be serialized as JSON.
    pub fn manifest(&self) -> Result<&Value, &serde_json::Error> {
        self.0.as_ref()
    }
}

/// Kinds of `k8s-openapi` and of `#[derive(kube::CustomResource)]` also serialize their
/// `apiVersion` and `kind`.
#[diagnostic::do_not_recommend]
impl<T: Serialize> From<T> for Child {
    fn from(object: T) -> Self {
        Self(serde_json::to_value(object))
    }
}

#[diagnostic::do_not_recommend]
impl<C: Into<Child>> Outcome<Desired> for Vec<C> {
    fn into_output(self) -> Result<Output, Error> {
        let manifests = self.into_iter().map(|child| child.into().0);
        let manifests = manifests.collect::<Result<Vec<Value>, _>>()?;
        Ok(Output::Json(Value::Array(manifests)))
    }
}
