//! The result of a scenario.

use std::fmt::Debug;

/// What the function of a scenario may return: nothing, or a `Result`.
///
/// The value in the `Result` is a part of the compared final state, such as what exists outside the
/// cluster.
pub trait ScenarioResult {
    /// The value as text, or the failure.
    ///
    /// # Errors
    /// Returns the failure of the scenario.
    fn into_text(self) -> Result<String, String>;
}

impl ScenarioResult for () {
    fn into_text(self) -> Result<String, String> {
        Ok(String::new())
    }
}

impl<T: Debug, E: Debug> ScenarioResult for Result<T, E> {
    fn into_text(self) -> Result<String, String> {
        match self {
            Ok(value) => Ok(format!("{value:#?}")),
            Err(error) => Err(format!("{error:#?}")),
        }
    }
}

/// The message of a panic.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("panicked: {}", text.unwrap_or("without a text"))
}
