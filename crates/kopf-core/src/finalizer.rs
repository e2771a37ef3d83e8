//! Whether an object is to be held with our finalizer or let go.
//!
//! Pure. The finalizer is on an object only while something must run at its deletion.

use kopf_model::Object;

/// What decides about the finalizer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holding {
    /// A daemon, a timer or a mandatory deletion handler concerns the object.
    pub is_needed: bool,
    /// The finalizer is on the object.
    pub is_present: bool,
    /// Deletion was requested.
    pub is_deleting: bool,
    /// The object is gone; its last state still shows the finalizer.
    pub is_gone: bool,
}

/// What to do about the finalizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Keep,
    /// Add it, before any handler runs: what handlers create must not outlive the object.
    Add,
    /// Remove it, because nothing needs to run at the deletion.
    Drop,
    /// Remove it as soon as all deletion handlers have finished and all daemons are gone.
    ReleaseWhenDone,
}

/// Whether our finalizer is on an object, so that it cannot go without us.
#[must_use]
pub fn is_held(object: &Object, finalizer: &str) -> bool {
    object.finalizers().iter().any(|it| it == finalizer)
}

/// Decides what to do.
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
