//! A log line: its level, its text and its details.

use std::borrow::Cow;

/// The importance of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For developers.
    Debug,
    /// For all users.
    Info,
    /// The operator's owner should act.
    Warning,
    /// Something failed.
    Error,
}

/// A line about an object, to be logged by the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The importance.
    pub level: Level,
    /// The text.
    pub text: Cow<'static, str>,
    /// The chain of causes or the traceback.
    pub details: Option<String>,
}

impl Line {
    /// For developers.
    pub fn debug(text: impl Into<Cow<'static, str>>) -> Self {
        Self { level: Level::Debug, text: text.into(), details: None }
    }

    /// For all users.
    pub fn info(text: impl Into<Cow<'static, str>>) -> Self {
        Self { level: Level::Info, text: text.into(), details: None }
    }

    /// The operator's owner should act.
    pub fn warning(text: impl Into<Cow<'static, str>>) -> Self {
        Self { level: Level::Warning, text: text.into(), details: None }
    }

    /// Something failed.
    pub fn error(text: impl Into<Cow<'static, str>>) -> Self {
        Self { level: Level::Error, text: text.into(), details: None }
    }
}
