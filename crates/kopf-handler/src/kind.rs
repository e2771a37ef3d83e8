//! The kinds of handlers as types: what the compiler checks a handler's inputs against.
//!
//! Markers only. They exist at compile time and leave no trace in the erased handler.

/// A kind of handlers, such as [`Create`].
pub trait Kind: 'static {}

/// Kinds that are called about an object.
#[diagnostic::on_unimplemented(
    message = "a `{Self}` handler is not called about an object",
    label = "there is no object in `{Self}` handlers"
)]
pub trait ObjectKind: Kind {}

/// Kinds that are called about a detected change; they may have sub-handlers.
pub trait ChangeKind: ObjectKind {}

/// Kinds that compare the object with an earlier state.
pub trait DiffKind: ObjectKind {}

/// Kinds that may know an earlier state of the object.
pub trait OldKind: ObjectKind {}

/// Kinds that know the state to be handled, apart from the object itself.
pub trait NewKind: ObjectKind {}

/// Kinds that run beside the object.
pub trait BackgroundKind: ObjectKind {}

/// Kinds that answer an admission request.
pub trait AdmissionKind: ObjectKind {}

/// Kinds that are about the operator itself.
pub trait ActivityKind: Kind {}

/// Kinds whose returned values are stored in the object's status.
pub trait StoringKind: ObjectKind {}

/// Kinds that know the children of the object.
#[diagnostic::on_unimplemented(
    message = "a `{Self}` handler does not know the children of the object",
    label = "there are no children in `{Self}` handlers",
    note = "`&Owned<T>` is for functions with `#[kopf::observe]` or `#[kopf::desired]`"
)]
pub trait FamilyKind: ObjectKind {}

/// Kinds whose handlers are over soon, so that they may hold an object's memo.
#[diagnostic::on_unimplemented(
    message = "a `{Self}` handler cannot hold a memo: take `SharedMemo<T>` by value",
    label = "not for as long as `{Self}` handlers run"
)]
pub trait BriefKind: ObjectKind {}

/// Kinds whose handlers are tried again after errors.
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
    Create: ObjectKind ChangeKind NewKind StoringKind BriefKind RetriedKind;
    /// `on::update`
    Update: ObjectKind ChangeKind DiffKind OldKind NewKind StoringKind BriefKind RetriedKind;
    /// `on::delete`
    Delete: ObjectKind ChangeKind OldKind NewKind StoringKind BriefKind RetriedKind;
    /// `on::resume`
    Resume: ObjectKind ChangeKind DiffKind OldKind NewKind StoringKind BriefKind RetriedKind;
    /// `on::field`
    Field: ObjectKind ChangeKind DiffKind OldKind NewKind StoringKind BriefKind RetriedKind;
    /// `subhandler`
    Sub: ObjectKind ChangeKind DiffKind OldKind NewKind StoringKind BriefKind RetriedKind;
    /// `on::event`
    Event: ObjectKind StoringKind BriefKind;
    /// `index`
    Index: ObjectKind BriefKind RetriedKind;
    /// `daemon`
    Daemon: ObjectKind BackgroundKind StoringKind RetriedKind;
    /// `timer`
    Timer: ObjectKind BackgroundKind StoringKind BriefKind RetriedKind;
    /// `desired`
    Desired: ObjectKind BriefKind FamilyKind RetriedKind;
    /// `observe`
    Observe: ObjectKind BriefKind FamilyKind RetriedKind;
    /// `on::validate`
    Validate: ObjectKind AdmissionKind DiffKind OldKind NewKind BriefKind;
    /// `on::mutate`
    Mutate: ObjectKind AdmissionKind DiffKind OldKind NewKind BriefKind;
    /// `on::startup`
    Startup: ActivityKind RetriedKind;
    /// `on::cleanup`
    Cleanup: ActivityKind RetriedKind;
    /// `on::login`
    Login: ActivityKind RetriedKind;
    /// `on::probe`
    Probe: ActivityKind RetriedKind;
}
