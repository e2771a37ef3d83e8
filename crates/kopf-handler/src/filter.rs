//! Filters from plain functions: of labels, values, and views of the object.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use kopf_core::answers::{CallbackId, on_thread};
use kopf_core::filter::{FilterResult, When};
use kopf_core::handler::Delay;
use kopf_core::{MetaFilter, Occasion, Subject, ValueFilter};
use kopf_model::{Resource, resource::SelectorName};
use serde_json::Value;

use crate::object::FromObject;

/// An argument of a condition: anything that can be read from the object ([`FromObject`]), or what
/// happened to it.
#[diagnostic::on_unimplemented(
    message = "a condition cannot look at `{Self}`",
    label = "neither a view of an object nor a change",
    note = "derive `serde::Deserialize` for it, or take `&Object`, `&Spec`, `&Meta`, `&Diff`"
)]
pub trait FilterInput: Sized {
    /// Reads the argument; `None` if it does not exist here, so that the handler does not apply to
    /// the object.
    fn read(subject: &Subject, occasion: &Occasion) -> Option<Self>;
}

#[diagnostic::do_not_recommend]
impl<V: FromObject> FilterInput for V {
    fn read(subject: &Subject, _: &Occasion) -> Option<Self> {
        look(subject)
    }
}

/// A function that can be a condition: of one argument by reference, or of the whole input.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a condition",
    label = "not a condition",
    note = "a condition is a function such as `fn(&Spec) -> bool`, or a closure such as `|spec: &Spec| ...`"
)]
pub trait Condition<Look>: Send + Sync + 'static {
    /// Whether the handler applies to the object.
    ///
    /// # Errors
    /// Fails while the answer of a [`blocking`] condition is unknown.
    fn holds(&self, subject: &Subject, occasion: &Occasion) -> FilterResult;
}

#[diagnostic::do_not_recommend]
impl<S: FilterInput, F: Fn(&S) -> bool + Send + Sync + 'static> Condition<(S,)> for F {
    fn holds(&self, subject: &Subject, occasion: &Occasion) -> FilterResult {
        Ok(S::read(subject, occasion).is_some_and(|input| self(&input)))
    }
}

#[diagnostic::do_not_recommend]
impl<F> Condition<(Subject, Occasion)> for F
where
    F: Fn(&Subject, &Occasion) -> bool + Send + Sync + 'static,
{
    fn holds(&self, subject: &Subject, occasion: &Occasion) -> FilterResult {
        Ok(self(subject, occasion))
    }
}

/// A condition that may block its thread; see [`blocking`].
pub struct Blocking<C, Look> {
    condition: Arc<C>,
    look: PhantomData<fn(Look)>,
}

/// A condition that may take long, such as one that reads files or asks other services.
///
/// The engine calls it on another thread, and handles other objects meanwhile. Other conditions
/// must return at once.
///
/// ```
/// use kopf_handler::{Spec, filter::{blocking, condition}};
///
/// fn is_licensed(spec: &Spec) -> bool {
///     let licenses = std::fs::read_to_string("/etc/licenses").unwrap_or_default();
///     licenses.lines().any(|line| Some(line) == spec["license"].as_str())
/// }
///
/// let licensed = condition(blocking(is_licensed));
/// ```
pub fn blocking<C: Condition<Look>, Look>(condition: C) -> Blocking<C, Look> {
    Blocking { condition: Arc::new(condition), look: PhantomData }
}

#[diagnostic::do_not_recommend]
impl<C: Condition<Look>, Look: 'static> Condition<Blocking<(), Look>> for Blocking<C, Look> {
    fn holds(&self, subject: &Subject, occasion: &Occasion) -> FilterResult {
        let id = CallbackId::of(Arc::as_ptr(&self.condition).cast::<()>());
        let (condition, subject) = (Arc::clone(&self.condition), subject.clone());
        let occasion = occasion.clone();
        on_thread(id, move || condition.holds(&subject, &occasion))
    }
}

/// A function that can accept a label, an annotation or a field: by its value alone, together with
/// one argument by reference, or with the whole input.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not judge an `Option<&{V}>`",
    label = "not a function for this filter",
    note = "the function is such as `fn(Option<&{V}>) -> bool`, or `fn(Option<&{V}>, &Spec) -> bool` to look at the object as well; types for that derive `serde::Deserialize`"
)]
pub trait Acceptance<V: ?Sized, Look>: Send + Sync + 'static {
    /// Whether the value (`None` if absent) is accepted.
    fn accepts(&self, value: Option<&V>, subject: &Subject, occasion: &Occasion) -> bool;
}

#[diagnostic::do_not_recommend]
impl<V: ?Sized, F: Fn(Option<&V>) -> bool + Send + Sync + 'static> Acceptance<V, ()> for F {
    fn accepts(&self, value: Option<&V>, _: &Subject, _: &Occasion) -> bool {
        self(value)
    }
}

#[diagnostic::do_not_recommend]
impl<V: ?Sized, S: FilterInput, F> Acceptance<V, (S,)> for F
where
    F: Fn(Option<&V>, &S) -> bool + Send + Sync + 'static,
{
    fn accepts(&self, value: Option<&V>, subject: &Subject, occasion: &Occasion) -> bool {
        S::read(subject, occasion).is_some_and(|input| self(value, &input))
    }
}

#[diagnostic::do_not_recommend]
impl<V: ?Sized, F> Acceptance<V, (Subject, Occasion)> for F
where
    F: Fn(Option<&V>, &Subject, &Occasion) -> bool + Send + Sync + 'static,
{
    fn accepts(&self, value: Option<&V>, subject: &Subject, occasion: &Occasion) -> bool {
        self(value, subject, occasion)
    }
}

/// A condition on the whole object.
pub fn condition<Look>(condition: impl Condition<Look>) -> When {
    Arc::new(move |subject, occasion| condition.holds(subject, occasion))
}

/// A view of an object; `None` if the object does not match the type.
#[must_use]
pub fn look<V: FromObject>(subject: &Subject) -> Option<V> {
    V::from_object(subject)
        .inspect_err(|error| {
            tracing::warn!(target: "kopf.objects", %error, "the object does not match the type of a filter");
        })
        .ok()
}

/// The argument of a condition; `None` if the handler does not apply to the object.
#[must_use]
pub fn read_input<S: FilterInput>(subject: &Subject, occasion: &Occasion) -> Option<S> {
    S::read(subject, occasion)
}

/// A condition on a label or an annotation: a function of its value, `None` if the key is absent.
pub fn meta_matches(accepts: impl Fn(Option<&str>) -> bool + Send + Sync + 'static) -> MetaFilter {
    MetaFilter::Matches(Arc::new(move |value, _, _| Ok(accepts(value))))
}

/// The same for a function with more arguments than the value, like conditions.
///
/// ```
/// use kopf_handler::{Spec, filter::meta_matches_with};
///
/// let own_app = meta_matches_with(|app: Option<&str>, spec: &Spec| app == spec["app"].as_str());
/// ```
pub fn meta_matches_with<Look>(accepts: impl Acceptance<str, Look>) -> MetaFilter {
    MetaFilter::Matches(Arc::new(move |value, subject, occasion| {
        Ok(accepts.accepts(value, subject, occasion))
    }))
}

/// A condition on a field: a function of its value, `None` if the field is absent.
pub fn value_matches(
    accepts: impl Fn(Option<&Value>) -> bool + Send + Sync + 'static,
) -> ValueFilter {
    ValueFilter::Matches(Arc::new(move |value, _, _| Ok(accepts(value))))
}

/// The same for a function with more arguments than the value, like conditions.
pub fn value_matches_with<Look>(accepts: impl Acceptance<Value, Look>) -> ValueFilter {
    ValueFilter::Matches(Arc::new(move |value, subject, occasion| {
        Ok(accepts.accepts(value, subject, occasion))
    }))
}

/// A condition on the resource itself.
pub fn matching_resources(
    accepts: impl Fn(&Resource) -> bool + Send + Sync + 'static,
) -> SelectorName {
    SelectorName::Matching(Arc::new(move |resource| Ok(accepts(resource))))
}

/// A delay computed from a view of the object; zero for objects that do not match the type.
pub fn delay<V: FromObject>(compute: impl Fn(&V) -> Duration + Send + Sync + 'static) -> Delay {
    Delay::Computed(Arc::new(move |subject| {
        Ok(look::<V>(subject).map_or(Duration::ZERO, |view| compute(&view)))
    }))
}
