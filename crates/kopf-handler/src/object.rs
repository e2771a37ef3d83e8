//! Data that can be read from an object: the whole, its parts, or any type.
//!
//! Gets a [`Subject`] from a call or a filter; knows nothing about handlers.

use std::fmt;
use std::ops::{Deref, Index};

use kopf_core::Subject;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::Error;

/// Something that can be read from an object.
///
/// Implemented for every type that implements `serde::Deserialize`: kinds of `k8s-openapi`, types
/// with `#[derive(kube::CustomResource)]`, and your own structs that name only some of the fields.
///
/// ```
/// # use kopf_handler::FromObject;
/// #[derive(serde::Deserialize)]
/// struct OnlyReplicas { spec: Replicas }
/// #[derive(serde::Deserialize)]
/// struct Replicas { replicas: u32 }
///
/// let object = kopf_model::Object::from_value(serde_json::json!({"spec": {"replicas": 3}}));
/// # let resource = kopf_handler::testing::resource("apps", "v1", "deployments", "Deployment");
/// let read = OnlyReplicas::from_object(&kopf_core::Subject { resource, object }).unwrap();
/// assert_eq!(read.spec.replicas, 3);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read from an object",
    label = "cannot be read from an object",
    note = "derive `serde::Deserialize` for it, or take `&Object`, `&Spec`, `&Meta`"
)]
pub trait FromObject: Sized + Send + Sync + 'static {
    /// Reads the value.
    ///
    /// # Errors
    /// Fails if the object does not match the type.
    fn from_object(subject: &Subject) -> Result<Self, Error>;
}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + Send + Sync + 'static> FromObject for T {
    fn from_object(subject: &Subject) -> Result<Self, Error> {
        subject.object.to().map_err(|source| {
            let type_name = std::any::type_name::<T>().rsplit("::").next().unwrap_or_default();
            let kind = subject.object.kind();
            let key = subject.object.key();
            format!("{kind} {key} cannot be read as `{type_name}`: {source}").into()
        })
    }
}

macro_rules! part_of_subject {
    ($($type:ident),*) => {$(
        impl FromObject for $type {
            fn from_object(subject: &Subject) -> Result<Self, Error> {
                Ok(Self(subject.clone()))
            }
        }
    )*};
}

macro_rules! text_of_object {
    ($($(#[$doc:meta])* $type:ident = $get:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $type(pub String);

        impl FromObject for $type {
            fn from_object(subject: &Subject) -> Result<Self, Error> {
                let get: fn(&kopf_model::Object) -> &str = $get;
                Ok(Self(get(&subject.object).to_owned()))
            }
        }

        impl Deref for $type {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<str> for $type {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }

        impl From<$type> for String {
            fn from(name: $type) -> String {
                name.0
            }
        }

        impl PartialEq<str> for $type {
            fn eq(&self, other: &str) -> bool {
                self.0 == other
            }
        }

        impl PartialEq<&str> for $type {
            fn eq(&self, other: &&str) -> bool {
                self.0 == *other
            }
        }
    )*};
}

/// The whole object, without a specific type.
///
/// Dereferences to [`kopf_model::Object`]: `name()`, `namespace()`, `uid()`, `value()`, `to::<T>()`.
#[derive(Clone)]
pub struct Object(Subject);

/// The `spec` of the object, as JSON; null if there is none.
///
/// Dereferences to [`Value`]: `spec["size"].as_i64()`.
#[derive(Clone)]
pub struct Spec(Subject);

/// The `metadata` of the object.
#[derive(Clone)]
pub struct Meta(Subject);

/// The labels of the object.
#[derive(Clone)]
pub struct Labels(Subject);

/// The annotations of the object.
#[derive(Clone)]
pub struct Annotations(Subject);

part_of_subject!(Object, Spec, Meta, Labels, Annotations);

text_of_object! {
    /// The name of the object.
    Name = |object| object.name();
    /// The namespace of the object; empty for cluster-scoped objects.
    Namespace = |object| object.namespace().unwrap_or_default();
    /// The unique id of the object.
    Uid = |object| object.uid();
}

impl Object {
    /// The resource of the object.
    #[must_use]
    pub fn resource(&self) -> &kopf_model::Resource {
        &self.0.resource
    }

    /// The object as known to the engine.
    #[must_use]
    pub fn subject(&self) -> &Subject {
        &self.0
    }

    /// The `spec`, null if there is none.
    #[must_use]
    pub fn spec(&self) -> &Value {
        part(&self.0, "spec")
    }

    /// The `status`, null if there is none.
    #[must_use]
    pub fn status(&self) -> &Value {
        part(&self.0, "status")
    }
}

impl Deref for Object {
    type Target = kopf_model::Object;

    fn deref(&self) -> &kopf_model::Object {
        &self.0.object
    }
}

impl Spec {
    /// The spec as a typed value.
    ///
    /// # Errors
    /// Fails if the spec does not match the type.
    pub fn to<T: DeserializeOwned>(&self) -> Result<T, Error> {
        Ok(T::deserialize(part(&self.0, "spec"))?)
    }
}

impl Deref for Spec {
    type Target = Value;

    fn deref(&self) -> &Value {
        part(&self.0, "spec")
    }
}

impl Meta {
    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.object.name()
    }

    /// The namespace, or `None` for cluster-scoped objects.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.0.object.namespace()
    }

    /// The unique id.
    #[must_use]
    pub fn uid(&self) -> &str {
        self.0.object.uid()
    }

    /// The generation, which is incremented with every change of the spec.
    #[must_use]
    pub fn generation(&self) -> Option<i64> {
        self.0.object.generation()
    }

    /// Whether deletion was requested.
    #[must_use]
    pub fn is_deleting(&self) -> bool {
        self.0.object.is_deleting()
    }

    /// The value of a label.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&str> {
        self.0.object.label(key)
    }

    /// The value of an annotation.
    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.0.object.annotation(key)
    }
}

/// The raw JSON of the metadata: `meta["ownerReferences"]`.
impl Deref for Meta {
    type Target = Value;

    fn deref(&self) -> &Value {
        part(&self.0, "metadata")
    }
}

macro_rules! string_map {
    ($type:ident, $field:literal) => {
        impl $type {
            /// The value of a key.
            #[must_use]
            pub fn get(&self, key: &str) -> Option<&str> {
                self.map()?.get(key)?.as_str()
            }

            /// Whether the key exists.
            #[must_use]
            pub fn contains_key(&self, key: &str) -> bool {
                self.get(key).is_some()
            }

            /// All keys and values.
            pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
                let entries = self.map().into_iter().flatten();
                entries.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
            }

            fn map(&self) -> Option<&Map<String, Value>> {
                part(&self.0, "metadata").get($field)?.as_object()
            }
        }

        /// The value of a key that must exist.
        ///
        /// # Panics
        /// Panics if the key does not exist; `get` does not.
        impl Index<&str> for $type {
            type Output = str;

            fn index(&self, key: &str) -> &str {
                match self.get(key) {
                    Some(value) => value,
                    None => panic!("the object has no {key:?} in its {}", $field),
                }
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.debug_map().entries(self.iter()).finish()
            }
        }
    };
}

string_map!(Labels, "labels");
string_map!(Annotations, "annotations");

macro_rules! shown_as_json {
    ($($type:ident),*) => {$(
        impl fmt::Display for $type {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                (**self).fmt(formatter)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&**self, formatter)
            }
        }
    )*};
}

shown_as_json!(Spec, Meta);

impl fmt::Debug for Object {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.object.fmt(formatter)
    }
}

impl fmt::Display for Object {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value().fmt(formatter)
    }
}

fn part<'a>(subject: &'a Subject, name: &str) -> &'a Value {
    static NOTHING: Value = Value::Null;
    subject.object.value().get(name).unwrap_or(&NOTHING)
}
