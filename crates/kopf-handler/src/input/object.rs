//! Inputs about the object itself: by reference and by value, patches, Kubernetes events.

use std::fmt;
use std::ops::{Deref, DerefMut};

use kopf_core::handler::Touches;
use kopf_core::{Call, Subject};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{Input, InputMut, InputRef, Plain, subject};
use crate::error::Error;
use crate::kind::{Mutate, ObjectKind, ReadKind};
use crate::merge;
use crate::object::{Annotations, FromObject, Labels, Meta, Name, Namespace, Object, Spec, Uid};

#[diagnostic::do_not_recommend]
impl<K: ReadKind, T: FromObject> InputRef<K> for T {
    fn take(call: &Call) -> Result<Self, Error> {
        T::from_object(subject(call)?)
    }
}

macro_rules! by_value {
    ($($type:ident),*) => {$(
        #[diagnostic::do_not_recommend]
        impl<K: ReadKind> Input<K> for $type {
            fn take(call: &Call) -> Result<Self, Error> {
                Self::from_object(subject(call)?)
            }
        }
    )*};
}

by_value!(Object, Spec, Meta, Labels, Annotations, Name, Namespace, Uid);

/// The object as a typed value, for closures, which cannot borrow their inputs.
///
/// In mutating webhooks, `&mut Typed<T>` turns every change into the patch of the response.
#[derive(Clone, Debug)]
pub struct Typed<T>(pub T);

impl<T> Deref for Typed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Typed<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

#[diagnostic::do_not_recommend]
impl<K: ReadKind, T: FromObject> Input<K> for Typed<T> {
    fn take(call: &Call) -> Result<Self, Error> {
        Ok(Self(T::from_object(subject(call)?)?))
    }
}

/// The object of a mutating webhook, with its state before the function ran.
#[derive(Debug)]
pub struct Mutable<T> {
    before: Value,
    object: Typed<T>,
}

impl<T> AsMut<Typed<T>> for Mutable<T> {
    fn as_mut(&mut self) -> &mut Typed<T> {
        &mut self.object
    }
}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + Serialize + Send + Sync + 'static> InputMut<Mutate> for Typed<T> {
    type Held = Mutable<T>;

    async fn take(call: &Call) -> Result<Mutable<T>, Error> {
        let object = Typed(T::from_object(subject(call)?)?);
        Ok(Mutable { before: serde_json::to_value(&object.0)?, object })
    }

    fn put_back(held: Mutable<T>, call: &Call) -> Result<(), Error> {
        let after = serde_json::to_value(&held.object.0)?;
        if let Some(Value::Object(changes)) = merge::difference(&held.before, &after) {
            kopf_model::merge::combine(&mut call.patch.lock().merge, changes);
        }
        Ok(())
    }
}

/// The changes that a handler makes to its object.
///
/// They become part of the single write of the cycle after the function returns.
///
/// ```
/// let mut patch = kopf_handler::Patch::default();
/// patch.set("spec.size", 3);
/// patch.remove(["metadata", "labels", "example.com/old"]);
/// assert_eq!(
///     patch.to_string(),
///     r#"{"spec":{"size":3},"metadata":{"labels":{"example.com/old":null}}}"#,
/// );
/// ```
#[derive(Clone, Debug, Default)]
pub struct Patch(kopf_model::Patch);

impl Patch {
    /// Sets the field at a dotted path, or at a list of keys.
    ///
    /// # Panics
    /// Panics if the value cannot be serialized as JSON, such as a map with keys that are not
    /// strings.
    pub fn set(&mut self, path: impl Into<Path>, value: impl Serialize) {
        let value = serde_json::to_value(value).expect("the value can be written as JSON");
        self.0.set(&path.into().0, value);
    }

    /// Removes the field at a dotted path, or at a list of keys.
    pub fn remove(&mut self, path: impl Into<Path>) {
        self.0.set(&path.into().0, Value::Null);
    }

    /// Changes the newest body with a function, for changes that merging cannot express, such as in
    /// lists.
    ///
    /// The function may run several times, each time on a newer body.
    pub fn transform(&mut self, change: impl Fn(&mut Value) + Send + Sync + 'static) {
        self.0.transform(change);
    }

    /// Adds a whole merge patch.
    pub fn merge(&mut self, changes: Map<String, Value>) {
        kopf_model::merge::combine(&mut self.0.merge, changes);
    }
}

/// The merge patch as JSON.
impl fmt::Display for Patch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        Value::from(self.0.merge.clone()).fmt(formatter)
    }
}

/// The path of a field: dotted, or a list of keys if keys contain dots.
#[derive(Clone, Debug)]
pub struct Path(kopf_model::FieldPath);

impl From<&str> for Path {
    fn from(dotted: &str) -> Self {
        Self(dotted.into())
    }
}

impl<const N: usize> From<[&str; N]> for Path {
    fn from(keys: [&str; N]) -> Self {
        Self(kopf_model::FieldPath::from_keys(keys))
    }
}

#[diagnostic::do_not_recommend]
impl<K: ObjectKind> InputMut<K> for Patch {
    type Held = Plain<Self>;

    async fn take(_: &Call) -> Result<Plain<Self>, Error> {
        Ok(Plain(Self::default()))
    }

    fn put_back(held: Plain<Self>, call: &Call) -> Result<(), Error> {
        if !held.0.0.is_empty() {
            call.patch.lock().absorb_from(&call.handler.id, held.0.0);
        }
        Ok(())
    }

    fn touches() -> Touches {
        Touches { object: true, status: true, ..Touches::nothing() }
    }
}

/// Posts Kubernetes events, as shown by `kubectl describe`: about the object, or about others.
///
/// ```
/// # use kopf_handler::input::Recorder;
/// # fn show(recorder: Recorder, pod: serde_json::Value) -> kopf_handler::Result {
/// recorder.normal("Restarting", "the image has changed");
/// recorder.about(&pod)?.warning("Evicted", "the node is full");
/// // Owner references work too, and an event can have any type.
/// recorder.about(&pod["metadata"]["ownerReferences"])?.event("Debug", "Seen", "by its child");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Recorder {
    about: Vec<Subject>,
    /// The handled object, whose namespace is also that of its owners.
    subject: Subject,
    recorder: std::sync::Arc<dyn kopf_core::invoke::Record>,
}

#[diagnostic::do_not_recommend]
impl<K: ObjectKind> Input<K> for Recorder {
    fn take(call: &Call) -> Result<Self, Error> {
        let recorder = std::sync::Arc::clone(&call.operator.recorder);
        let subject = subject(call)?.clone();
        Ok(Self { about: vec![subject.clone()], subject, recorder })
    }

    fn touches() -> Touches {
        Touches { events: true, ..Touches::nothing() }
    }
}

impl Recorder {
    /// Posts an event of type `Normal`.
    pub fn normal(&self, reason: &str, message: impl fmt::Display) {
        self.event("Normal", reason, message);
    }

    /// Posts an event of type `Warning`.
    pub fn warning(&self, reason: &str, message: impl fmt::Display) {
        self.event("Warning", reason, message);
    }

    /// Posts an event of any type.
    pub fn event(&self, kind: &str, reason: &str, message: impl fmt::Display) {
        let message = message.to_string();
        for about in &self.about {
            self.recorder.record(about, kind, reason, &message);
        }
    }

    /// Posts about other objects: typed or JSON, references to objects or owners, or lists of them.
    ///
    /// # Errors
    /// Fails if one of them is not an object, or has no kind or no name.
    pub fn about(&self, objects: &impl Serialize) -> Result<Self, Error> {
        let mut about = Vec::new();
        self.collect(serde_json::to_value(objects)?, &mut about)?;
        Ok(Self { about, ..self.clone() })
    }

    fn collect(&self, objects: Value, about: &mut Vec<Subject>) -> Result<(), Error> {
        match objects {
            Value::Array(list) => list.into_iter().try_for_each(|it| self.collect(it, about)),
            mut body => {
                if body.get("metadata").is_none() && body.get("name").is_some() {
                    body["metadata"] = json!({
                        "name": body["name"], "uid": body["uid"],
                        // Owners are in the namespace of their children.
                        "namespace": body.get("namespace").map_or_else(
                            || self.subject.object.namespace().into(), Value::clone),
                    });
                }
                let has = |text: &Value| text.as_str().is_some_and(|text| !text.is_empty());
                if !body.is_object() || !has(&body["kind"]) || !has(&body["metadata"]["name"]) {
                    let problem = "an event is about an object, which has a kind and a name";
                    return Err(Error::from(problem).permanent());
                }
                // Events are posted with the object's own kind and version, not with those of its
                // resource.
                let resource = std::sync::Arc::clone(&self.subject.resource);
                about.push(Subject { resource, object: kopf_model::Object::from_value(body) });
                Ok(())
            }
        }
    }
}
