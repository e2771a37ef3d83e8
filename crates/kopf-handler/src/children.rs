//! The children of the object, as seen by the watches.
//!
//! Typed views only; the engine stores the children and decides when handlers are called.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use kopf_core::Call;
use kopf_core::invoke::Family;
use kopf_model::{ObjectKey, Resource};
use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::input::{Input, InputRef, Requirement, subject};
use crate::kind::FamilyKind;

/// The children of the object of one kind, ordered by name, as a slice.
///
/// These are the objects with the label `kopf.dev/owner`: applied with `owner.apply(...)` or as
/// desired children. Reading them needs no request, and they are at least as new as the operator's
/// own writes.
///
/// The handler declares with `children(...)` which kinds are watched, and is not called before they
/// are listed. Changes of the children trigger observers and desired children; all other handlers
/// only read them when called. Daemons get the children at their start, and later ones with
/// [`now`](Self::now).
///
/// ```ignore
/// #[kopf::on::observe(LoadTest, children(Pod))]
/// async fn count(pods: &Children<Pod>, status: &mut Status<LoadTestStatus>) {
///     status.pods = pods.len();
/// }
///
/// #[kopf::on::delete(LoadTest, children(Pod))]
/// async fn collect(pods: &Children<Pod>, recorder: Recorder) {
///     recorder.normal("Deleted", format!("{} pods will go as well", pods.len()));
/// }
/// ```
pub struct Children<T> {
    children: Vec<T>,
    family: Arc<dyn Family>,
    resource: Arc<Resource>,
    owner: ObjectKey,
}

impl<T: fmt::Debug> fmt::Debug for Children<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(&self.children).finish()
    }
}

impl<T> Deref for Children<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.children
    }
}

impl<'a, T> IntoIterator for &'a Children<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.children.iter()
    }
}

#[diagnostic::do_not_recommend]
impl<K, T> InputRef<K> for Children<T>
where
    K: FamilyKind,
    T: kube::Resource<DynamicType = ()> + DeserializeOwned,
{
    fn take(call: &Call) -> Result<Self, Error> {
        Self::of(call)
    }

    fn requires() -> Option<Requirement> {
        Some(Requirement::Children { type_name: std::any::type_name::<T>() })
    }
}

/// For closures, which cannot borrow their inputs.
#[diagnostic::do_not_recommend]
impl<K, T> Input<K> for Children<T>
where
    K: FamilyKind,
    T: kube::Resource<DynamicType = ()> + DeserializeOwned,
{
    fn take(call: &Call) -> Result<Self, Error> {
        Self::of(call)
    }

    fn requires() -> Option<Requirement> {
        Some(Requirement::Children { type_name: std::any::type_name::<T>() })
    }
}

impl<T: kube::Resource<DynamicType = ()> + DeserializeOwned> Children<T> {
    fn of(call: &Call) -> Result<Self, Error> {
        let (group, version, kind) = (T::group(&()), T::version(&()), T::kind(&()));
        let family = call.family.as_ref();
        let resource = family.and_then(|family| family.resource(&group, &version, &kind));
        let (Some(family), Some(resource)) = (family, resource) else {
            return Err(Error::from(format!("children of kind {kind} are not watched")));
        };
        // Other kinds may be known too, but their changes would not trigger the handler.
        if !call.handler.children.iter().any(|selector| selector.matches(&resource)) {
            let id = &call.handler.id;
            let problem = format!("handler {id} does not watch {kind}: add it to `children(...)`");
            return Err(Error::from(problem).permanent());
        }
        let owner = subject(call)?.object.key();
        Self::look(Arc::clone(family), resource, owner)
    }

    /// The current children, even long after the handler was called.
    ///
    /// # Errors
    /// Fails if they cannot be listed at the moment, or one of them does not match its type.
    pub fn now(&self) -> Result<Self, Error> {
        Self::look(Arc::clone(&self.family), Arc::clone(&self.resource), self.owner.clone())
    }

    fn look(
        family: Arc<dyn Family>,
        resource: Arc<Resource>,
        owner: ObjectKey,
    ) -> Result<Self, Error> {
        let kind = T::kind(&());
        let read = |child: kopf_model::Object| {
            child.to().map_err(|source| {
                let key = child.key();
                Error::from(format!("{kind} {key} of {owner} does not fit its type: {source}"))
            })
        };
        let children = family.children(&resource).ok_or_else(|| {
            Error::from(format!("the children of kind {kind} could not be listed yet"))
        })?;
        let children = children.into_iter().map(read).collect::<Result<_, _>>()?;
        Ok(Self { children, family, resource, owner })
    }
}
