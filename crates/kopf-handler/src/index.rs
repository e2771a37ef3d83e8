//! Indexes: keys and values of all objects of a kind, kept in memory for all handlers.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use kopf_core::Call;
use kopf_core::invoke::IndexView;
use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::input::{Input, InputRef, Requirement};
use crate::kind::Kind;
use crate::outcome::Entries;

/// A function with `#[kopf::on::index(...)]`, by its own name.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an index",
    label = "not an index",
    note = "name a function with the attribute `#[kopf::on::index(...)]`"
)]
pub trait IndexSource: 'static {
    /// The name of the index.
    const NAME: &'static str;
    /// What the function returns.
    type Entries: Entries;
}

/// An index, named by the function that fills it.
///
/// ```ignore
/// #[kopf::on::index(Pod)]
/// fn by_node(pod: &Pod) -> Option<(String, String)> { /* node and name */ }
///
/// #[kopf::on::create(Node)]
/// async fn count(name: Name, pods: &Index<by_node>) {
///     println!("{} pods", pods.get(&name.0).len());
/// }
/// ```
pub struct Index<S> {
    view: Arc<dyn IndexView>,
    source: PhantomData<fn() -> S>,
}

type Key<S> = <<S as IndexSource>::Entries as Entries>::Key;
type Value<S> = <<S as IndexSource>::Entries as Entries>::Value;

impl<S: IndexSource> Index<S> {
    /// The values of all objects under a key.
    pub fn get(&self, key: &Key<S>) -> Vec<Arc<Value<S>>> {
        let Ok(key) = serde_json::to_value(key) else { return Vec::new() };
        let values = self.view.get(&key).into_iter();
        values.filter_map(|value| value.downcast().ok()).collect()
    }

    /// Whether there are any values under a key.
    pub fn contains(&self, key: &Key<S>) -> bool {
        serde_json::to_value(key).is_ok_and(|key| !self.view.get(&key).is_empty())
    }

    /// All keys.
    #[must_use]
    pub fn keys(&self) -> Vec<Key<S>>
    where
        Key<S>: DeserializeOwned,
    {
        let keys = self.view.keys().into_iter();
        keys.filter_map(|key| serde_json::from_value(key).ok()).collect()
    }

    fn find(call: &Call) -> Result<Self, Error> {
        let view = call.indexes.get(S::NAME).ok_or_else(|| {
            let name = S::NAME;
            Error::from(format!("the operator has no index {name}: add it to its handlers"))
                .permanent()
        })?;
        Ok(Self { view, source: PhantomData })
    }
}

impl<S> fmt::Debug for Index<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Index").field("keys", &self.view.keys()).finish()
    }
}

#[diagnostic::do_not_recommend]
impl<K: Kind, S: IndexSource> InputRef<K> for Index<S> {
    fn take(call: &Call) -> Result<Self, Error> {
        Self::find(call)
    }

    fn requires() -> Option<Requirement> {
        Some(Requirement::Index { name: S::NAME })
    }
}

#[diagnostic::do_not_recommend]
impl<K: Kind, S: IndexSource> Input<K> for Index<S> {
    fn take(call: &Call) -> Result<Self, Error> {
        Self::find(call)
    }

    fn requires() -> Option<Requirement> {
        Some(Requirement::Index { name: S::NAME })
    }
}
