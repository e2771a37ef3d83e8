//! Children of the object: adopted with owner references, names, namespaces and labels.

use kopf_core::{Call, Subject};
use kopf_model::hierarchy::{self, Adoption};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::Error;
use crate::input::{Input, subject};
use crate::kind::ObjectKind;

/// The object as the owner of others.
///
/// Children are typed or JSON, one or a list. What they already have stays as it is.
///
/// ```
/// # use kopf_handler::{Owner, Result};
/// # use serde_json::json;
/// async fn create(owner: Owner) -> Result {
///     let pod = owner.adopt(json!({
///         "apiVersion": "v1", "kind": "Pod",
///         "spec": {"containers": [{"name": "main", "image": "busybox"}]},
///     }))?;
///     // The pod has the owner's namespace and labels, a name that begins with the owner's, and is
///     // deleted together with it.
///     Ok(())
/// }
/// ```
#[derive(Clone)]
pub struct Owner {
    subject: Subject,
    adoption: Adoption,
}

impl Owner {
    /// Makes a child of the object: owner reference, name, namespace and labels.
    ///
    /// # Errors
    /// Fails when the child is not an object or a list of objects.
    pub fn adopt<T: Serialize + DeserializeOwned>(&self, child: T) -> Result<T, Error> {
        self.change(child, |child, owner| Ok(hierarchy::adopt(child, owner, &self.adoption)?))
    }

    /// The same, with children that have exactly the owner's name.
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.adoption.is_strict = true;
        self
    }

    /// The same, with children whose names, namespaces and labels are overwritten.
    #[must_use]
    pub fn forced(mut self) -> Self {
        self.adoption.is_forced = true;
        self
    }

    /// The same, with labels also on the objects at a path inside of the children.
    ///
    /// For example `spec.template` of deployments.
    #[must_use]
    pub fn nested(mut self, path: &str) -> Self {
        self.adoption.nested.push(path.into());
        self
    }

    /// Puts only the labels of the object on a child.
    ///
    /// # Errors
    /// Fails when the child is not an object or a list of objects.
    pub fn label<T: Serialize + DeserializeOwned>(&self, child: T) -> Result<T, Error> {
        self.change(child, |child, owner| {
            let labels = owner.get("metadata").and_then(|metadata| metadata.get("labels"));
            let Some(Value::Object(labels)) = labels else { return Ok(()) };
            let Adoption { is_forced, nested, .. } = &self.adoption;
            Ok(hierarchy::label(child, labels, *is_forced, nested)?)
        })
    }

    /// Takes a child out of the ownership.
    ///
    /// # Errors
    /// Fails when the child is not an object or a list of objects.
    pub fn release<T: Serialize + DeserializeOwned>(&self, child: T) -> Result<T, Error> {
        self.change(child, |child, owner| Ok(hierarchy::remove_owner_reference(child, owner)?))
    }

    /// The owner reference, for children that are built elsewhere.
    #[must_use]
    pub fn reference(&self) -> Value {
        hierarchy::build_owner_reference(self.subject.object.value(), true, true)
    }

    fn change<T: Serialize + DeserializeOwned>(
        &self,
        child: T,
        change: impl FnOnce(&mut Value, &Value) -> Result<(), Error>,
    ) -> Result<T, Error> {
        let mut tree = serde_json::to_value(child)?;
        change(&mut tree, self.subject.object.value())?;
        Ok(serde_json::from_value(tree)?)
    }
}

#[diagnostic::do_not_recommend]
impl<K: ObjectKind> Input<K> for Owner {
    fn take(call: &Call) -> Result<Self, Error> {
        Ok(Self { subject: subject(call)?.clone(), adoption: Adoption::default() })
    }
}
