//! Values kept in memory for an object, from its first event to its deletion.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use futures::lock::{Mutex, OwnedMutexGuard};
use kopf_core::invoke::Extensions;
use kopf_core::{Call, HandlerKind};

use super::{Input, InputMut};
use crate::duration::Seconds;
use crate::error::{Error, temporary};
use crate::kind::{self, BriefKind, Kind};

/// A value kept in memory for the object; lost when the operator restarts.
///
/// Taken as `&mut Memo<T>`: the value itself, locked while the handler runs. Daemons run for long,
/// so they take a [`SharedMemo`] instead. So should handlers that write to their own object through
/// a client if admission handlers use the memo: otherwise these would wait for each other.
#[derive(Debug)]
pub struct Memo<T>(OwnedMutexGuard<T>);

/// The same value as [`Memo`], locked only while it is used.
///
/// Handlers of the operator itself use it to access the operator's own memo. Every object's memo
/// starts as a copy of the operator's, made when a handler of the object first takes it; so the
/// operator's values must be `Clone`. Values shared by all objects belong in an `Arc` in it, or in
/// the [`State`](super::State).
///
/// ```
/// # use kopf_handler::input::SharedMemo;
/// #[derive(Clone, Default)]
/// struct Limits { per_object: u32 }
///
/// // In `#[kopf::on::startup]`: the initial value of every object's `Memo<Limits>`.
/// async fn configure(limits: SharedMemo<Limits>) {
///     limits.with(|limits| limits.per_object = 10).await;
/// }
/// ```
#[derive(Debug)]
pub struct SharedMemo<T>(Arc<Mutex<T>>);

impl<T> SharedMemo<T> {
    /// Reads or changes the value; waits while another handler of the object holds it.
    pub async fn with<R>(&self, look: impl FnOnce(&mut T) -> R) -> R {
        look(&mut *self.0.lock().await)
    }
}

impl<T> Deref for Memo<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Memo<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> AsMut<Self> for Memo<T> {
    fn as_mut(&mut self) -> &mut Self {
        self
    }
}

/// Kinds whose handlers may share a memo of a type: any type for objects, `Clone` types for the
/// operator.
#[diagnostic::on_unimplemented(
    message = "a `{Self}` handler has no memo of `{T}`",
    note = "every object's memo starts as a copy of the operator's: derive `Clone` for it"
)]
pub trait MemoKind<T>: Kind {
    #[doc(hidden)]
    fn memo(memo: &Extensions) -> Arc<Mutex<T>>;
}

macro_rules! memo_kinds {
    ($memo:ident($bound:ident): $($kind:ident)*) => {$(
        impl<T: $bound + Default + Send + Sync + 'static> MemoKind<T> for kind::$kind {
            fn memo(memo: &Extensions) -> Arc<Mutex<T>> {
                $memo(memo)
            }
        }
    )*};
}

memo_kinds!(own(Default): Create Update Delete Resume Field Sub Event Index Daemon Timer);
memo_kinds!(own(Default): Desired Observe Validate Mutate);
memo_kinds!(copied(Clone): Startup Cleanup Login Probe);

#[diagnostic::do_not_recommend]
impl<K: MemoKind<T>, T: Default + Send + Sync + 'static> Input<K> for SharedMemo<T> {
    fn take(call: &Call) -> Result<Self, Error> {
        Ok(Self(K::memo(&call.memo)))
    }
}

#[diagnostic::do_not_recommend]
impl<K: BriefKind, T: Default + Send + Sync + 'static> InputMut<K> for Memo<T> {
    type Held = Self;

    async fn take(call: &Call) -> Result<Self, Error> {
        let value = own::<T>(&call.memo);
        if !matches!(call.handler.kind, HandlerKind::Sub) {
            return Ok(Self(value.lock_owned().await));
        }
        // Waiting would never end if the parent, which waits for us, holds it.
        value.try_lock_owned().map(Self).ok_or_else(|| {
            let id = &call.handler.id;
            temporary(format!("the memo is held while sub-handler {id} wants it"))
                .retry_in(1.secs())
        })
    }

    fn put_back(_: Self, _: &Call) -> Result<(), Error> {
        Ok(())
    }
}

fn own<T: Default + Send + Sync + 'static>(memo: &Extensions) -> Arc<Mutex<T>> {
    memo.get_or_insert_with(Mutex::default)
}

/// The operator's own memo, which objects copy.
fn copied<T: Clone + Default + Send + Sync + 'static>(memo: &Extensions) -> Arc<Mutex<T>> {
    memo.get_or_insert_copied(Mutex::default, |value| {
        // The operator's memo is held only by functions that do not wait.
        Mutex::new(futures::executor::block_on(value.lock()).clone())
    })
}
