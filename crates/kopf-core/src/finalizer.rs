//! Decides whether to hold an object with our finalizer or to release it.
//!
//! Pure. The finalizer is on an object only while something must run when it is deleted.

use kopf_model::Object;

/// The inputs of the decision about the finalizer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holding {
    /// Whether a daemon, a timer or a mandatory deletion handler applies to the object.
    pub is_needed: bool,
    /// Whether the finalizer is on the object.
    pub is_present: bool,
    /// Whether deletion was requested.
    pub is_deleting: bool,
    /// Whether the object is gone; its last state still shows the finalizer.
    pub is_gone: bool,
}

/// What to do about the finalizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Do nothing.
    Keep,
    /// Add it before any handler runs: what handlers create must not outlive the object.
    Add,
    /// Remove it, because nothing needs to run on deletion.
    Drop,
    /// Remove it once all deletion handlers have finished and all daemons have stopped.
    ReleaseWhenDone,
}

/// Whether our finalizer is on an object, so that it cannot be deleted without us.
#[must_use]
pub fn is_held(object: &Object, finalizer: &str) -> bool {
    object.finalizers().iter().any(|it| it == finalizer)
}

/// Decides what to do about the finalizer.
#[must_use]
pub fn decide(holding: Holding) -> Step {
    match holding {
        Holding { is_gone: true, .. } => Step::Keep,
        Holding { is_needed: true, is_present: false, is_deleting: false, .. } => Step::Add,
        Holding { is_needed: false, is_present: true, .. } => Step::Drop,
        Holding { is_present: true, is_deleting: true, .. } => Step::ReleaseWhenDone,
        _ => Step::Keep,
    }
}

#[cfg(test)]
mod tests;
