//! Values kept in memory beside an object, from its first appearance to its deletion.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use futures::lock::{Mutex, OwnedMutexGuard};
use kopf_core::{Call, HandlerKind};

use super::{Input, InputMut};
use crate::duration::Seconds;
use crate::error::{Error, temporary};
use crate::kind::{BriefKind, Kind};

/// A value kept in memory beside the object; lost when the operator restarts.
///
/// Taken as `&mut Memo<T>`: it is the value itself, held for as long as the handler runs. Daemons
/// run for long, and take a [`SharedMemo`] instead.
#[derive(Debug)]
pub struct Memo<T>(OwnedMutexGuard<T>);

/// The same value as [`Memo`], locked only for as long as it is looked at.
///
/// Handlers of the operator itself see the operator's own memo with it.
#[derive(Debug)]
pub struct SharedMemo<T>(Arc<Mutex<T>>);

impl<T> SharedMemo<T> {
    /// Looks at the value or changes it; waits while another handler of the object holds it.
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

impl<K: Kind, T: Default + Send + Sync + 'static> Input<K> for SharedMemo<T> {
    fn take(call: &Call) -> Result<Self, Error> {
        Ok(Self(shared(call)))
    }
}

impl<K: BriefKind, T: Default + Send + Sync + 'static> InputMut<K> for Memo<T> {
    type Held = Self;

    async fn take(call: &Call) -> Result<Self, Error> {
        let value = shared::<T>(call);
        if !matches!(call.handler.kind, HandlerKind::Sub) {
            return Ok(Self(value.lock_owned().await));
        }
        // Waiting would never end if the parent, which waits for us, is the one that holds it.
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

fn shared<T: Default + Send + Sync + 'static>(call: &Call) -> Arc<Mutex<T>> {
    call.memo.get_or_insert_with(|| Mutex::new(T::default()))
}
