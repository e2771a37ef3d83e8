//! The lines that users and their tests look for in the logs, exactly as Kopf writes them.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::time::Duration;

use crate::handler::Handler;
use crate::occasion::Reason;

pub use crate::log_line::{Level, Line};

/// The finalizer is about to be added.
pub const ADDING_FINALIZER: &str = "Adding the finalizer, thus preventing the actual deletion.";
/// The finalizer is about to be removed from an object that no handler needs to hold.
pub const DROPPING_FINALIZER: &str =
    "Removing the finalizer, as there are no handlers requiring it.";
/// The finalizer is about to be removed because everything is done for the deletion.
pub const RELEASING_FINALIZER: &str = "Removing the finalizer, thus allowing the actual deletion.";
/// The object is gone.
pub const GONE: &str = "Deleted, really deleted, and we are notified.";
/// The object is being deleted and is not held by us.
pub const FREE: &str = "Deletion, but we are done with it, and we do not care.";
/// The event is of no interest.
pub const NOOP: &str =
    "Something has changed, but we are not interested (the essence is the same).";
/// The cycle has nothing more to do.
pub const CYCLE_FINISHED: &str = "Handling cycle is finished, waiting for new changes.";
/// A patch was not sent.
pub const PATCH_SKIPPED: &str = "Patching was skipped: the object does not exist anymore.";
/// An object is handled again after errors.
pub const THROTTLING_OVER: &str = "Throttling is over. Switching back to normal operations.";

/// `creation`, `updating`, `deletion`, `resuming`; other words are unchanged.
#[must_use]
pub fn title(purpose: &str) -> &str {
    match purpose {
        "create" => "creation",
        "update" => "updating",
        "delete" => "deletion",
        "resume" => "resuming",
        other => other,
    }
}

/// The title with a capital letter, for the beginning of a sentence.
#[must_use]
pub fn title_capitalised(purpose: &str) -> Cow<'static, str> {
    match purpose {
        "create" => "Creation".into(),
        "update" => "Updating".into(),
        "delete" => "Deletion".into(),
        "resume" => "Resuming".into(),
        other => {
            let mut characters = other.chars();
            let first = characters.next().into_iter().flat_map(char::to_uppercase);
            first.chain(characters).collect::<String>().into()
        }
    }
}

/// The cycle of a cause starts; the body follows the colon.
#[must_use]
pub fn in_progress(reason: Reason, body: &str) -> Line {
    Line::debug(format!("{} is in progress: {body}", title_capitalised(reason.as_str())))
}

/// The changes.
#[must_use]
pub fn diff(reason: Reason, diff: &str) -> Line {
    Line::debug(format!("{} diff: {diff}", title_capitalised(reason.as_str())))
}

/// All handlers of a cause have finished.
#[must_use]
pub fn processed(reason: Reason, succeeded: usize, failed: usize) -> Line {
    let title = title_capitalised(reason.as_str());
    Line::info(format!("{title} is processed: {succeeded} succeeded; {failed} failed."))
}

/// Another cause was detected before the handlers of the previous one finished.
#[must_use]
pub fn superseded(former: &str, reason: Reason, counts: [usize; 3]) -> Line {
    let [succeeded, failed, left] = counts;
    Line::info(format!(
        "{} is superseded by {}: {succeeded} succeeded; {failed} failed; \
         {left} left to the moment.",
        title_capitalised(former),
        title(reason.as_str()),
    ))
}

/// A handler has succeeded; logged for every object, so the text is built directly.
#[must_use]
pub fn succeeded(handler: &Handler) -> String {
    let mut text = String::with_capacity(handler.id.len() + 48);
    let _infallible = write!(text, "{handler} succeeded.");
    text
}

/// A handler is about to be called.
#[must_use]
pub fn invoked(handler: &Handler) -> Line {
    Line::debug(format!("{handler} is invoked."))
}

/// A daemon has ended.
#[must_use]
pub fn daemon_exited(handler: &Handler, on_request: bool) -> Line {
    Line::debug(if on_request {
        format!("{handler} has exited on request and will not be retried or restarted.")
    } else {
        format!("{handler} has exited on its own and will not be retried or restarted.")
    })
}

/// An unexpected error about an object.
#[must_use]
pub fn throttling(delay: Duration, error: &str) -> Line {
    let seconds = seconds(delay);
    Line::error(format!("Throttling for {seconds} seconds due to an unexpected error: {error}"))
}

/// A number of items, such as `1 handler` or `2 handlers`.
#[must_use]
pub fn counted(count: usize, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

/// A number of seconds without unnecessary digits.
#[must_use]
pub fn seconds(duration: Duration) -> String {
    duration.as_secs_f64().to_string()
}

#[cfg(test)]
mod tests;
