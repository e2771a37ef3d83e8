//! Inputs of webhooks: the request, its user, and the warnings to return.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use kopf_core::{Call, Occasion};
use serde_json::Value;

use super::change::wrong_occasion;
use super::{Input, InputMut, Plain};
use crate::error::Error;
use crate::kind::AdmissionKind;

/// The whole admission request; dereferences to [`kopf_core::occasion::Review`].
#[derive(Clone, Debug)]
pub struct AdmissionRequest(Arc<kopf_core::occasion::Review>);

/// Warnings for the user who sent the request; `kubectl` prints them.
///
/// ```
/// # use kopf_handler::input::Warnings;
/// fn check(warnings: &mut Warnings) {
///     warnings.push("the field `size` is about to go".into());
/// }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Warnings(Vec<String>);

/// Whether the request is a dry run: nothing is stored, whatever the response is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DryRun(pub bool);

/// The requested operation: `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation(pub String);

/// The user who sent the request.
#[derive(Clone, Debug, PartialEq)]
pub struct User(Value);

/// The HTTP headers of the review request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Headers(Vec<(String, String)>);

impl Deref for AdmissionRequest {
    type Target = kopf_core::occasion::Review;

    fn deref(&self) -> &kopf_core::occasion::Review {
        &self.0
    }
}

impl Deref for Warnings {
    type Target = Vec<String>;

    fn deref(&self) -> &Vec<String> {
        &self.0
    }
}

impl DerefMut for Warnings {
    fn deref_mut(&mut self) -> &mut Vec<String> {
        &mut self.0
    }
}

impl User {
    /// The user's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0["username"].as_str().unwrap_or_default()
    }

    /// The groups of the user.
    pub fn groups(&self) -> impl Iterator<Item = &str> {
        self.0["groups"].as_array().into_iter().flatten().filter_map(Value::as_str)
    }

    /// All data of the server about the user.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.0
    }
}

impl Headers {
    /// The value of a header; the case of its name does not matter.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut headers = self.0.iter();
        headers.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

impl Deref for Operation {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

macro_rules! from_review {
    ($($type:ident = $get:expr;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<K: AdmissionKind> Input<K> for $type {
            fn take(call: &Call) -> Result<Self, Error> {
                let get: fn(&Arc<kopf_core::occasion::Review>) -> Self = $get;
                match &call.occasion {
                    Occasion::Admission(review) => Ok(get(review)),
                    _ => Err(wrong_occasion(call)),
                }
            }
        }
    )*};
}

from_review! {
    AdmissionRequest = |review| Self(Arc::clone(review));
    DryRun = |review| Self(review.dry_run);
    Operation = |review| Self(review.operation.clone());
    User = |review| Self(review.user_info.clone());
    Headers = |review| Self(review.headers.clone());
}

#[diagnostic::do_not_recommend]
impl<K: AdmissionKind> InputMut<K> for Warnings {
    type Held = Plain<Self>;

    async fn take(_: &Call) -> Result<Plain<Self>, Error> {
        Ok(Plain(Self::default()))
    }

    fn put_back(held: Plain<Self>, call: &Call) -> Result<(), Error> {
        if let Some(warnings) = &call.warnings {
            warnings.lock().extend(held.0.0);
        }
        Ok(())
    }
}
