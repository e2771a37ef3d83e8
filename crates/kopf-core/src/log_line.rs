//! One line for the log: its level, its text, and what belongs to it.

/// How important a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For developers.
    Debug,
    /// For everybody.
    Info,
    /// The operator's owner should act.
    Warning,
    /// Something failed.
    Error,
}

/// One line about an object, to be logged by the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// How important it is.
    pub level: Level,
    /// The text.
    pub text: String,
    /// The chain of causes or the traceback.
    pub details: Option<String>,
}

impl Line {
    /// For developers.
    pub fn debug(text: impl Into<String>) -> Self {
        Self { level: Level::Debug, text: text.into(), details: None }
    }

    /// For everybody.
    pub fn info(text: impl Into<String>) -> Self {
        Self { level: Level::Info, text: text.into(), details: None }
    }

    /// The operator's owner should act.
    pub fn warning(text: impl Into<String>) -> Self {
        Self { level: Level::Warning, text: text.into(), details: None }
    }

    /// Something failed.
    pub fn error(text: impl Into<String>) -> Self {
        Self { level: Level::Error, text: text.into(), details: None }
    }
}
