//! The children of the object, as the watches have seen them: for observers and desired children.
//!
//! Typed views only; the engine keeps the children and says when to look at them.

use std::ops::Deref;

use kopf_core::Call;
use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::input::{Input, InputRef, subject};
use crate::kind::FamilyKind;

/// The children of one kind that the object has, ordered by name: a slice of them.
///
/// They are those with the label `kopf.dev/owner`: applied with `owner.apply(...)` or by desired
/// children. It costs no request, and is at least as new as what the operator itself has written.
///
/// ```ignore
/// #[kopf::observe(LoadTest, children(Pod))]
/// async fn count(pods: &Owned<Pod>, status: &mut Status<LoadTestStatus>) {
///     status.pods = pods.len();
/// }
/// ```
#[derive(Debug)]
pub struct Owned<T>(Vec<T>);

impl<T> Deref for Owned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<'a, T> IntoIterator for &'a Owned<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<K, T> InputRef<K> for Owned<T>
where
    K: FamilyKind,
    T: kube::Resource<DynamicType = ()> + DeserializeOwned,
{
    fn take(call: &Call) -> Result<Self, Error> {
        Self::of(call)
    }
}

/// For closures, which cannot borrow their inputs.
impl<K, T> Input<K> for Owned<T>
where
    K: FamilyKind,
    T: kube::Resource<DynamicType = ()> + DeserializeOwned,
{
    fn take(call: &Call) -> Result<Self, Error> {
        Self::of(call)
    }
}

impl<T: kube::Resource<DynamicType = ()> + DeserializeOwned> Owned<T> {
    fn of(call: &Call) -> Result<Self, Error> {
        let (group, version, kind) = (T::group(&()), T::version(&()), T::kind(&()));
        let family = call.family.as_ref();
        let resource = family.and_then(|family| family.resource(&group, &version, &kind));
        let (Some(family), Some(resource)) = (family, resource) else {
            return Err(Error::from(format!("children of kind {kind} are not watched")));
        };
        // Of other kinds something may be known, too, but changes of them lead nowhere.
        if !call.handler.kind.children().iter().any(|selector| selector.matches(&resource)) {
            let id = &call.handler.id;
            let problem = format!("handler {id} does not watch {kind}: add it to `children(...)`");
            return Err(Error::from(problem).permanent());
        }
        let owner = subject(call)?;
        let read = |child: kopf_model::Object| {
            child.to().map_err(|source| {
                let (key, owner) = (child.key(), owner.object.key());
                Error::from(format!("{kind} {key} of {owner} does not fit its type: {source}"))
            })
        };
        Ok(Self(family.children(&resource).into_iter().map(read).collect::<Result<_, _>>()?))
    }
}
