//! The resource of a Rust type, and its definition if it is a custom one.

use std::any::TypeId;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::{LazyLock, Mutex, PoisonError};

use kopf_core::handler::TypeDefinition;
use kopf_model::{Selector, resource::SelectorName};
use serde_json::Value;

/// A type that represents a resource of the cluster.
///
/// Implemented for every `kube::Resource` known at compile time: types with
/// `#[derive(kube::CustomResource)]` and the kinds of `k8s-openapi`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a Kubernetes resource",
    label = "not a resource",
    note = "name a type with `#[derive(kube::CustomResource)]` or a kind of `k8s-openapi`, or the resource as a text: \"group\", \"version\", \"plural\""
)]
pub trait TypedResource {
    /// The selector of exactly this resource.
    fn selector() -> Selector;
}

#[diagnostic::do_not_recommend]
impl<K: kube::Resource<DynamicType = ()>> TypedResource for K {
    fn selector() -> Selector {
        Selector {
            group: Some(K::group(&()).into_owned()),
            version: Some(K::version(&()).into_owned()),
            name: SelectorName::Plural(K::plural(&()).into_owned()),
        }
    }
}

/// Finds the definition of a custom resource; for use by the attributes only.
///
/// For types with a definition, the inherent method wins over the trait's.
#[doc(hidden)]
pub struct Definition<K>(PhantomData<K>);

impl<K> Definition<K> {
    #[doc(hidden)]
    #[must_use]
    pub fn of() -> Self {
        Self(PhantomData)
    }
}

impl<K: kube::CustomResourceExt + 'static> Definition<K> {
    #[doc(hidden)]
    #[must_use]
    pub fn find(&self) -> Option<TypeDefinition> {
        Some(TypeDefinition::lazy(definition::<K>))
    }
}

/// The definition of a type, created once: schemas are derived again with each call, and tests
/// request them often.
fn definition<K: kube::CustomResourceExt + 'static>() -> Value {
    static MADE: LazyLock<Mutex<HashMap<TypeId, Value>>> = LazyLock::new(Mutex::default);
    let make = || serde_json::to_value(K::crd()).expect("a definition can be written as JSON");
    // Inserted definitions are complete, even if deriving another one has panicked.
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    made.entry(TypeId::of::<K>()).or_insert_with(make).clone()
}

#[doc(hidden)]
pub trait NoDefinition {
    fn find(&self) -> Option<TypeDefinition> {
        None
    }
}

impl<K> NoDefinition for Definition<K> {}
