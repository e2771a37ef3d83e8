//! The kinds of handlers as types: the compiler checks the inputs of handlers against them.
//!
//! Only markers. They exist at compile time and leave no trace in the type-erased handler.

/// A kind of handler, such as [`Create`].
pub trait Kind: 'static {}

/// Kinds that have an object to read.
#[diagnostic::on_unimplemented(
    message = "a `{Self}` handler is not called about an object",
    label = "there is no object in `{Self}` handlers"
)]
pub trait ReadKind: Kind {}

/// Kinds that handle an object: it can be patched, and they can be restricted to some objects.
#[diagnostic::on_unimplemented(
    message = "a `{Self}` handler does not handle an object",
    label = "there is no object to handle in `{Self}` handlers"
)]
pub trait ObjectKind: ReadKind {}

/// Kinds that are called for a detected change; they may have sub-handlers.
pub trait ChangeKind: ObjectKind {}

/// Kinds that are called because something has happened, and know what.
pub trait CausedKind: ObjectKind {}

/// Kinds that compare the object with an earlier state.
pub trait DiffKind: ObjectKind {}

/// Kinds that may know an earlier state of the object.
pub trait OldKind: ObjectKind {}

/// Kinds that know the state to be handled, apart from the object itself.
pub trait NewKind: ObjectKind {}

/// Kinds that run while the object exists.
pub trait BackgroundKind: ObjectKind {}

/// Kinds that respond to an admission request.
pub trait AdmissionKind: ObjectKind {}

/// Kinds that are about the operator itself.
pub trait ActivityKind: Kind {}

/// Kinds whose returned values are stored in the object's status.
pub trait StoringKind: ObjectKind {}

/// Kinds that may read the children of the object.
///
/// All kinds that are called for objects, except those whose result must not depend on anything
/// else: indexes are filled before children are known, reviews cannot wait for them, and
/// sub-handlers are created too late for a watch to start.
#[diagnostic::on_unimplemented(
    message = "a `{Self}` handler does not know the children of the object",
    label = "there are no children in `{Self}` handlers"
)]
pub trait FamilyKind: ObjectKind {}

/// Kinds whose handlers return soon, so that they may hold an object's memo.
#[diagnostic::on_unimplemented(
    message = "a `{Self}` handler cannot hold a memo",
    label = "not for as long as `{Self}` handlers run",
    note = "daemons take `SharedMemo<T>` by value; conversions have no memo"
)]
pub trait BriefKind: ObjectKind {}

/// Kinds whose handlers are retried after errors.
#[diagnostic::on_unimplemented(message = "a `{Self}` handler is not tried again after errors")]
pub trait RetriedKind: Kind {}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident: $($capability:ident)*;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;
        impl Kind for $name {}
        $(impl $capability for $name {})*
    )*};
}

kinds! {
    /// `on::create`
    Create: ReadKind ObjectKind CausedKind ChangeKind NewKind StoringKind BriefKind FamilyKind RetriedKind;
    /// `on::update`
    Update: ReadKind ObjectKind CausedKind ChangeKind DiffKind OldKind NewKind StoringKind BriefKind
        FamilyKind RetriedKind;
    /// `on::delete`
    Delete: ReadKind ObjectKind CausedKind ChangeKind OldKind NewKind StoringKind BriefKind FamilyKind
        RetriedKind;
    /// `on::resume`
    Resume: ReadKind ObjectKind CausedKind ChangeKind DiffKind OldKind NewKind StoringKind BriefKind
        FamilyKind RetriedKind;
    /// `on::field`
    Field: ReadKind ObjectKind CausedKind ChangeKind DiffKind OldKind NewKind StoringKind BriefKind
        FamilyKind RetriedKind;
    /// `subhandler`
    Sub: ReadKind ObjectKind CausedKind ChangeKind DiffKind OldKind NewKind StoringKind BriefKind
        RetriedKind;
    /// `on::event`
    Event: ReadKind ObjectKind CausedKind StoringKind BriefKind FamilyKind;
    /// `index`
    Index: ReadKind ObjectKind BriefKind RetriedKind;
    /// `daemon`
    Daemon: ReadKind ObjectKind CausedKind BackgroundKind StoringKind FamilyKind RetriedKind;
    /// `timer`
    Timer: ReadKind ObjectKind CausedKind BackgroundKind StoringKind BriefKind FamilyKind RetriedKind;
    /// `desired`
    Desired: ReadKind ObjectKind BriefKind FamilyKind RetriedKind;
    /// `observe`
    Observe: ReadKind ObjectKind BriefKind FamilyKind RetriedKind;
    /// `on::validate`
    Validate: ReadKind ObjectKind CausedKind AdmissionKind DiffKind OldKind NewKind BriefKind;
    /// `on::mutate`
    Mutate: ReadKind ObjectKind CausedKind AdmissionKind DiffKind OldKind NewKind BriefKind;
    /// `on::convert`
    Convert: ReadKind;
    /// `on::startup`
    Startup: ActivityKind RetriedKind;
    /// `on::cleanup`
    Cleanup: ActivityKind RetriedKind;
    /// `on::login`
    Login: ActivityKind RetriedKind;
    /// `on::probe`
    Probe: ActivityKind RetriedKind;
}
