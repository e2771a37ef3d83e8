//! What to do with a patch that a server has rejected, for cycles and for daemons and timers.
//!
//! A cycle holds up its object while it cannot write, so that it must come to an end: what the
//! server never takes is dropped, except for the engine's own part. A daemon or timer holds up
//! nobody, and has no own part.

/// How a server has rejected a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// The object is not in the expected state.
    Conflict,
    /// The content is not acceptable, or a test of it failed: servers do not tell these apart.
    Invalid,
    /// The request is malformed or too large.
    Unacceptable,
    /// We lack the rights, or a policy is against it.
    Forbidden,
    /// The object does not exist.
    NotFound,
    /// Any other decision of the server against the request.
    Refused,
    /// The same request may succeed a little later.
    Transient,
    /// Anything else, such as a failed login.
    Other,
}

/// Who wants to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    /// A cycle that has failed so many times in a row.
    Cycle {
        /// How many times.
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
    /// Forget it, and say so.
    Drop,
    /// Keep it for later.
    Keep,
}

/// What a look for the newest state of an object has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// A newer one than that which was written to.
    Newer,
    /// The same: this is the newest one for sure.
    Same,
    /// Nothing that could be trusted.
    Unsure,
    /// We are not allowed to look.
    Forbidden,
}

/// What became of our own part of a rejected patch.
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
    /// There is no rest, or it was refused for what it asks for: forget it, and say so.
    Done,
    /// Send it all to the state in the answer.
    Again,
    /// Keep it all for later.
    Keep,
}

/// How often in a row a write is forbidden before it is taken for refused: rights may be granted
/// soon, but a policy does not change its mind.
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
/// take, after a look for a newer state.
#[must_use]
pub fn after_outdated(rejection: Rejection, look: Look, asker: Asker) -> After {
    match (asker, look, rejection) {
        (_, Look::Newer, _) | (_, Look::Same, Rejection::Conflict) => After::Again,
        // The answer to the next request is as good as a look.
        (Asker::Cycle { .. }, _, Rejection::Conflict) => After::Again,
        (Asker::Cycle { .. }, ..) => After::OwnPart,
        (Asker::Background, Look::Same, _) => After::Drop,
        (Asker::Background, ..) => After::Keep,
    }
}

/// Decides about the rest of a patch when our own part of it was sent.
///
/// `is_finalizer_moved`: the answer has our finalizer and the former state had not, or the other
/// way round. A finalizer goes with a test of the version: the rest was not refused for that.
#[must_use]
pub fn after_own_part(
    answer: OwnAnswer,
    look: Look,
    is_finalizer_moved: bool,
    is_deleting: bool,
) -> AfterOwn {
    match answer {
        OwnAnswer::Changed if look == Look::Same || is_finalizer_moved => AfterOwn::Done,
        // Notes go without such a test, but the answer to them is the newest state.
        OwnAnswer::Changed => AfterOwn::Again,
        // Nothing that is asked of an object on its way out may hold it up.
        OwnAnswer::Unchanged if look == Look::Same || is_deleting => AfterOwn::Done,
        // Without our part the handlers would run again, so it is tried again.
        OwnAnswer::Unchanged | OwnAnswer::Outdated => AfterOwn::Keep,
    }
}

#[cfg(test)]
mod tests;
