//! How callbacks of users and front ends fail: filters, delays, transformations, lifecycles,
//! selectors and storages.
//!
//! A callback returns its error. A panic is a mistake in a callback; the engine catches it, too.

use std::any::Any;
use std::sync::Arc;

/// A callback has failed with its own error.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct CallbackError {
    /// What went wrong.
    pub message: String,
    /// The original error, if the front end has one.
    pub object: Option<ErrorObject>,
    /// What to log below the message, such as a stack.
    pub details: Option<String>,
}

/// The original error of a front end, such as an exception of Python.
#[derive(Clone)]
pub struct ErrorObject(pub Arc<dyn Any + Send + Sync>);

impl CallbackError {
    /// An error with a message only.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), object: None, details: None }
    }

    /// The same with the original error.
    #[must_use]
    pub fn with_object(self, object: ErrorObject) -> Self {
        Self { object: Some(object), ..self }
    }

    /// The same with what to log below the message.
    #[must_use]
    pub fn with_details(self, details: impl Into<String>) -> Self {
        Self { details: Some(details.into()), ..self }
    }
}

impl From<String> for CallbackError {
    fn from(message: String) -> Self {
        Self::new(message)
    }
}

impl std::fmt::Debug for ErrorObject {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("ErrorObject")
    }
}
