//! Filters made of plain functions: of labels, values, and views of the object.

use std::sync::Arc;
use std::time::Duration;

use kopf_core::filter::When;
use kopf_core::handler::Delay;
use kopf_core::{MetaFilter, Occasion, Subject, ValueFilter};
use kopf_model::{Resource, resource::SelectorName};
use serde_json::Value;

use crate::view::View;

/// What a condition may look at: any [`View`] of the object, or what happened to it.
#[diagnostic::on_unimplemented(
    message = "a condition cannot look at `{Self}`",
    label = "neither a view of an object nor a change",
    note = "derive `serde::Deserialize` for it, or take `&Object`, `&Spec`, `&Meta`, `&Diff`"
)]
pub trait Sight: Sized {
    /// Looks; none when there is no such thing here, so that the object does not concern the handler.
    fn see(subject: &Subject, occasion: &Occasion) -> Option<Self>;
}

#[diagnostic::do_not_recommend]
impl<V: View> Sight for V {
    fn see(subject: &Subject, _: &Occasion) -> Option<Self> {
        look(subject)
    }
}

/// A function that can be a condition: of one sight by reference, or of all there is.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a condition",
    label = "not a condition",
    note = "a condition is a function such as `fn(&Spec) -> bool`, or a closure such as `|spec: &Spec| ...`"
)]
pub trait Condition<Look>: Send + Sync + 'static {
    /// Whether the object concerns the handler.
    fn holds(&self, subject: &Subject, occasion: &Occasion) -> bool;
}

#[diagnostic::do_not_recommend]
impl<S: Sight, F: Fn(&S) -> bool + Send + Sync + 'static> Condition<(S,)> for F {
    fn holds(&self, subject: &Subject, occasion: &Occasion) -> bool {
        S::see(subject, occasion).is_some_and(|sight| self(&sight))
    }
}

#[diagnostic::do_not_recommend]
impl<F> Condition<(Subject, Occasion)> for F
where
    F: Fn(&Subject, &Occasion) -> bool + Send + Sync + 'static,
{
    fn holds(&self, subject: &Subject, occasion: &Occasion) -> bool {
        self(subject, occasion)
    }
}

/// A condition on the whole object.
pub fn condition<Look>(condition: impl Condition<Look>) -> When {
    Arc::new(move |subject, occasion| condition.holds(subject, occasion))
}

/// A view of an object; none when the object does not fit.
#[must_use]
pub fn look<V: View>(subject: &Subject) -> Option<V> {
    V::view(subject)
        .inspect_err(|error| tracing::warn!(target: "kopf.objects", %error, "filter does not fit"))
        .ok()
}

/// What a condition looks at; none when the object does not concern the handler.
#[must_use]
pub fn see<S: Sight>(subject: &Subject, occasion: &Occasion) -> Option<S> {
    S::see(subject, occasion)
}

/// A condition on a label or an annotation.
pub fn meta_matches(accepts: impl Fn(Option<&str>) -> bool + Send + Sync + 'static) -> MetaFilter {
    MetaFilter::Matches(Arc::new(move |value, _| accepts(value)))
}

/// A condition on a field.
pub fn value_matches(
    accepts: impl Fn(Option<&Value>) -> bool + Send + Sync + 'static,
) -> ValueFilter {
    ValueFilter::Matches(Arc::new(move |value, _| accepts(value)))
}

/// A condition on the resource itself.
pub fn matching_resources(
    accepts: impl Fn(&Resource) -> bool + Send + Sync + 'static,
) -> SelectorName {
    SelectorName::Matching(Arc::new(accepts))
}

/// A delay computed from a view of the object; none for objects that do not fit.
pub fn delay<V: View>(compute: impl Fn(&V) -> Duration + Send + Sync + 'static) -> Delay {
    Delay::Computed(Arc::new(move |subject| {
        look::<V>(subject).map_or(Duration::ZERO, |view| compute(&view))
    }))
}
