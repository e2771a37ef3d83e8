//! Decides what to do with a patch that a server has rejected, for cycles, daemons and timers.
//!
//! A cycle blocks its object while it cannot write, so it must end: content that the server never
//! accepts is dropped, except for the engine's own part. A daemon or timer blocks nothing, and has
//! no own part.

/// How a server has rejected a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// The object is not in the expected state.
    Conflict,
    /// The content is not acceptable, or a test of it failed: servers do not distinguish these.
    Invalid,
    /// The request is malformed or too large.
    Unacceptable,
    /// We lack the rights, or a policy forbids it.
    Forbidden,
    /// The object does not exist.
    NotFound,
    /// The server rejected the request for any other reason.
    Refused,
    /// The same request may succeed a little later.
    Transient,
    /// Anything else, such as a failed login.
    Other,
}

/// Who wants to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    /// A cycle that has failed repeatedly.
    Cycle {
        /// How many times in a row.
        failures: u32,
    },
    /// A daemon or a timer.
    Background,
}

/// What to do with a rejected patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// Send it again for the newest known state.
    Again,
    /// Send only the engine's own part, see [`after_own_part`].
    OwnPart,
    /// Discard it, and report that.
    Drop,
    /// Keep it for later.
    Keep,
}

/// The result of fetching the newest state of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// A newer state than the one that was written to.
    Newer,
    /// The same state: it is certainly the newest one.
    Same,
    /// Nothing reliable.
    Unsure,
    /// We have no right to read the object.
    Forbidden,
}

/// The result of sending our own part of a rejected patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnAnswer {
    /// It is written.
    Changed,
    /// There was nothing to write.
    Unchanged,
    /// It was not for the newest state either.
    Outdated,
}

/// What to do with the rest of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterOwn {
    /// There is no rest, or its content was rejected: discard it, and report that.
    Done,
    /// Send everything again, for the state in the response.
    Again,
    /// Keep everything for later.
    Keep,
}

/// How often in a row a write is forbidden before it counts as rejected: rights may be granted
/// soon, but a policy does not change.
const FORBIDDEN_MAX: u32 = 5;

impl Rejection {
    /// Whether the same request may succeed soon.
    #[must_use]
    pub fn may_pass_soon(self) -> bool {
        matches!(self, Self::Transient | Self::Conflict)
    }
}

/// Decides about a patch that failed for another reason than a newer state.
#[must_use]
pub fn after_failure(rejection: Rejection, asker: Asker) -> After {
    use Rejection::{Forbidden, Invalid, NotFound, Refused, Unacceptable};
    match (asker, rejection) {
        (Asker::Cycle { .. }, Invalid | Unacceptable) => After::OwnPart,
        (Asker::Cycle { failures }, Forbidden) if failures >= FORBIDDEN_MAX => After::OwnPart,
        (Asker::Background, Forbidden | NotFound | Invalid | Unacceptable | Refused) => After::Drop,
        _ => After::Keep,
    }
}

/// Decides about a patch that was not for the newest state, or whose content the server does not
/// accept, after fetching the newest state.
#[must_use]
pub fn after_outdated(rejection: Rejection, look: Look, asker: Asker) -> After {
    match (asker, look, rejection) {
        (_, Look::Newer, _) | (_, Look::Same, Rejection::Conflict) => After::Again,
        // The response to the next request is as good as fetching.
        (Asker::Cycle { .. }, _, Rejection::Conflict) => After::Again,
        (Asker::Cycle { .. }, ..) => After::OwnPart,
        (Asker::Background, Look::Same, _) => After::Drop,
        (Asker::Background, ..) => After::Keep,
    }
}

/// Decides about the rest of a patch after our own part of it was sent.
///
/// `is_finalizer_moved`: the response has our finalizer and the previous state had not, or vice
/// versa. A finalizer is sent with a test of the version, so the version was current and the rest
/// was rejected for its content.
#[must_use]
pub fn after_own_part(
    answer: OwnAnswer,
    look: Look,
    is_finalizer_moved: bool,
    is_deleting: bool,
) -> AfterOwn {
    match answer {
        OwnAnswer::Changed if look == Look::Same || is_finalizer_moved => AfterOwn::Done,
        // Records are sent without such a test, but the response to them is the newest state.
        OwnAnswer::Changed => AfterOwn::Again,
        // No request may block an object that is being deleted.
        OwnAnswer::Unchanged if look == Look::Same || is_deleting => AfterOwn::Done,
        // Without our part the handlers would run again, so it is retried.
        OwnAnswer::Unchanged | OwnAnswer::Outdated => AfterOwn::Keep,
    }
}

#[cfg(test)]
mod tests;
