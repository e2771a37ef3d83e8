//! How a scenario ended: what its function may return.

use std::fmt::Debug;

/// What the function of a scenario may return: nothing, or a `Result`.
///
/// What is in the `Result` is a part of the end state that is compared, such as what exists outside
/// of the cluster.
pub trait ScenarioResult {
    /// The value as text, or the failure.
    ///
    /// # Errors
    /// The failure of the scenario.
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

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("panicked: {}", text.unwrap_or("without a text"))
}
