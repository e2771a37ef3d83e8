//! The resources of a closure, and the version that it converts to.

use kopf_model::Selector;
use kopf_model::selector::SelectorError;

use crate::selector::TypedResource;

/// The resources of a handler, as strings or as a selector.
pub trait ForResources {
    /// The selector.
    ///
    /// # Errors
    /// Fails if the strings do not name a resource.
    fn into_selector(self) -> Result<Selector, SelectorError>;
}

/// `plural`, `plural.group`, `plural.version.group`, a kind, a short name; `*` is everything.
impl ForResources for &str {
    fn into_selector(self) -> Result<Selector, SelectorError> {
        Selector::parse(&[self])
    }
}

/// Group and plural, or `group/version` and plural.
impl ForResources for (&str, &str) {
    fn into_selector(self) -> Result<Selector, SelectorError> {
        Selector::parse(&[self.0, self.1])
    }
}

/// Group, version and plural.
impl ForResources for (&str, &str, &str) {
    fn into_selector(self) -> Result<Selector, SelectorError> {
        Selector::parse(&[self.0, self.1, self.2])
    }
}

impl ForResources for Selector {
    fn into_selector(self) -> Result<Selector, SelectorError> {
        Ok(self)
    }
}

/// The resource of a type, usable wherever a string is.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use kopf_handler::closure;
///
/// let handler = closure::event(closure::of::<Pod>(), || async {});
/// ```
#[must_use]
pub fn of<T: TypedResource>() -> Selector {
    T::selector()
}

/// The target version of a conversion: its name, or a resource as returned by [`of`].
pub trait ToVersion {
    /// The same resource in that version.
    fn of(self, from: &Selector) -> Selector;
}

impl ToVersion for &str {
    fn of(self, from: &Selector) -> Selector {
        Selector { version: Some(self.to_owned()), ..from.clone() }
    }
}

impl ToVersion for Selector {
    fn of(self, _: &Selector) -> Selector {
        self
    }
}
