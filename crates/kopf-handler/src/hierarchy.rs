//! Adopts children of the object: owner references, names, namespaces and labels.

use std::sync::Arc;

use kopf_core::desired::OWNER_LABEL;
use kopf_core::invoke::Family;
use kopf_core::{Call, Subject};
use kopf_model::Resource;
use kopf_model::hierarchy::{self, Adoption};
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::Error;
use crate::input::{Input, subject};
use crate::kind::ObjectKind;

/// The object as the owner of others.
///
/// Children are typed or JSON, single or a list. Their existing fields are kept.
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
    family: Option<Arc<dyn Family>>,
}

/// The default field manager for children, if there is no engine.
const FIELD_MANAGER: &str = "kopf";

impl Owner {
    /// Makes a child of the object: sets owner reference, name, namespace and labels.
    ///
    /// # Errors
    /// Fails if the child is not an object or a list of objects.
    pub fn adopt<T: Serialize + DeserializeOwned>(&self, child: T) -> Result<T, Error> {
        self.change(child, |child, owner| Ok(hierarchy::adopt(child, owner, &self.adoption)?))
    }

    /// Adopts a child and applies it server-side; returns the server's version of it.
    ///
    /// Applying twice creates one child. It gets the label `kopf.dev/owner`, by which
    /// `&Children<T>` and `#[kopf::on::observe]` find it; children applied here are in
    /// `&Children<T>` at once.
    ///
    /// ```
    /// # use kopf_handler::{Owner, Result};
    /// # use serde_json::json;
    /// async fn create(owner: Owner, client: kube::Client) -> Result {
    ///     let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"key": "value"}});
    ///     let map = owner.strict().apply(&client, map).await?;
    ///     println!("the config map has the uid {}", map["metadata"]["uid"]);
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// Fails if the child has no kind or no name, if it is in another namespace than its owner
    /// (only desired children can be), or if the server rejects it.
    pub async fn apply<T: Serialize + DeserializeOwned>(
        &self,
        client: &Client,
        child: T,
    ) -> Result<T, Error> {
        let mut child = self.adopt(serde_json::to_value(child)?)?;
        child["metadata"]["labels"][OWNER_LABEL] = self.subject.object.uid().into();
        let text = |key: &str| child.get(key).and_then(Value::as_str).unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let of = |key: &str| child["metadata"].get(key).and_then(Value::as_str);
        let Some(name) = of("name").filter(|_| !kind.is_empty() && !api_version.is_empty()) else {
            let advice = "name it, or say `owner.strict()` to give it the owner's name";
            return Err(Error::from(format!("a child without a name: {advice}")).permanent());
        };
        let namespace = of("namespace");
        let home = self.subject.object.namespace();
        if home.is_some() && namespace != home {
            let problem = format!("{kind} {name} is not in the namespace of its owner");
            let advice = "owner references cannot lead there, desired children can";
            return Err(Error::from(format!("{problem}: {advice}")).permanent());
        }
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let known = self.family.as_ref().and_then(|it| it.resource(group, version, kind));
        let resource = match &known {
            Some(resource) => api_resource(resource),
            None => {
                let kind = GroupVersionKind::gvk(group, version, kind);
                kube::discovery::pinned_kind(client, &kind).await?.0
            }
        };
        let api: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
            None => Api::all_with(client.clone(), &resource),
        };
        let family = self.family.as_ref();
        let manager = family.map_or_else(|| FIELD_MANAGER.to_owned(), |it| it.field_manager());
        let applying = PatchParams::apply(&manager).force();
        let applied = api.patch(name, &applying, &Patch::Apply(&child)).await?;
        let applied = serde_json::to_value(applied)?;
        if let (Some(family), Some(resource)) = (&self.family, &known) {
            family.note(resource, kopf_model::Object::from_value(applied.clone()));
        }
        Ok(serde_json::from_value(applied)?)
    }

    /// Gives children exactly the owner's name.
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.adoption.is_strict = true;
        self
    }

    /// Overwrites names, namespaces and labels of children.
    #[must_use]
    pub fn forced(mut self) -> Self {
        self.adoption.is_forced = true;
        self
    }

    /// Makes this one owner among others, not the controller of the children.
    #[must_use]
    pub fn beside_others(mut self) -> Self {
        self.adoption.is_controller = false;
        self
    }

    /// Lets the owner be deleted before its children.
    #[must_use]
    pub fn unblocked(mut self) -> Self {
        self.adoption.blocks_owner_deletion = false;
        self
    }

    /// Also sets labels on the objects at a path inside the children.
    ///
    /// For example `spec.template` of deployments.
    #[must_use]
    pub fn nested(mut self, path: &str) -> Self {
        self.adoption.nested.push(path.into());
        self
    }

    /// Only sets the labels of the object on a child.
    ///
    /// # Errors
    /// Fails if the child is not an object or a list of objects.
    pub fn label<T: Serialize + DeserializeOwned>(&self, child: T) -> Result<T, Error> {
        self.change(child, |child, owner| {
            let labels = owner.get("metadata").and_then(|metadata| metadata.get("labels"));
            let Some(Value::Object(labels)) = labels else { return Ok(()) };
            let Adoption { is_forced, nested, .. } = &self.adoption;
            Ok(hierarchy::label(child, labels, *is_forced, nested)?)
        })
    }

    /// Only sets the owner reference on a child, unless it has one to this owner.
    ///
    /// # Errors
    /// Fails if the child is not an object or a list of objects.
    pub fn own<T: Serialize + DeserializeOwned>(&self, child: T) -> Result<T, Error> {
        let Adoption { is_controller, blocks_owner_deletion, .. } = self.adoption;
        self.change(child, |child, owner| {
            Ok(hierarchy::append_owner_reference(
                child,
                owner,
                is_controller,
                blocks_owner_deletion,
            )?)
        })
    }

    /// Only sets the name of a child: one that begins with the owner's, or exactly that if strict.
    ///
    /// # Errors
    /// Fails if the child is not an object or a list of objects.
    pub fn name<T: Serialize + DeserializeOwned>(&self, child: T) -> Result<T, Error> {
        let Adoption { is_forced, is_strict, .. } = self.adoption;
        let name = self.subject.object.name();
        self.change(child, |child, _| {
            Ok(hierarchy::harmonize_naming(child, name, is_forced, is_strict)?)
        })
    }

    /// Only sets the namespace of a child to that of the object.
    ///
    /// # Errors
    /// Fails if the child is not an object or a list of objects.
    pub fn place<T: Serialize + DeserializeOwned>(&self, child: T) -> Result<T, Error> {
        let namespace = self.subject.object.namespace();
        self.change(child, |child, _| {
            Ok(hierarchy::adjust_namespace(child, namespace, self.adoption.is_forced)?)
        })
    }

    /// Removes the owner reference from a child.
    ///
    /// # Errors
    /// Fails if the child is not an object or a list of objects.
    pub fn release<T: Serialize + DeserializeOwned>(&self, child: T) -> Result<T, Error> {
        self.change(child, |child, owner| Ok(hierarchy::remove_owner_reference(child, owner)?))
    }

    /// The owner reference, for children that are built elsewhere.
    #[must_use]
    pub fn reference(&self) -> Value {
        let Adoption { is_controller, blocks_owner_deletion, .. } = self.adoption;
        let owner = self.subject.object.value();
        hierarchy::build_owner_reference(owner, is_controller, blocks_owner_deletion)
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
        let (subject, family) = (subject(call)?.clone(), call.family.clone());
        Ok(Self { subject, adoption: Adoption::default(), family })
    }
}

fn api_resource(Resource { group, version, kind, plural, .. }: &Resource) -> ApiResource {
    let kind = GroupVersionKind::gvk(group, version, kind);
    ApiResource::from_gvk_with_plural(&kind, plural)
}
