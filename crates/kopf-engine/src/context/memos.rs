//! The memos of objects: the operator's own, and those shared by an object's handlers.
//!
//! Cycles keep an object's memo in the memory of the object. Admission reviews have no access to
//! that, so if there are admission handlers, memos can also be found by uid.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, OnceLock, Weak};

use kopf_core::invoke::Extensions;
use parking_lot::Mutex;

use crate::pool::dismiss;

/// How many memos used only by admission handlers are kept; the oldest ones are dropped.
const REVIEWED_MAX: usize = 16 * 1024;

/// The memos of the operator and its objects.
pub(crate) struct Memos {
    operator: Arc<Extensions>,
    /// Locked briefly by cycles and reviews; unset without admission handlers.
    by_uid: OnceLock<Mutex<ByUid>>,
}

#[derive(Default)]
struct ByUid {
    memos: HashMap<Box<str>, Known>,
    /// The uids of memos kept only for admission, oldest first.
    reviewed: VecDeque<Box<str>>,
    /// The size at which unused memos are searched for.
    swept_at: usize,
}

struct Known {
    memo: Weak<Extensions>,
    /// Keeps a memo that only reviews have used: cycles keep those that they use themselves.
    kept: Option<Arc<Extensions>>,
}

impl Memos {
    /// Starts every memo as a copy of the operator's; reviews can find those of objects if there
    /// are any reviews.
    pub(crate) fn new(operator: Extensions, has_admission: bool) -> Self {
        let memos = Self { operator: Arc::new(operator), by_uid: OnceLock::new() };
        if has_admission {
            memos.share_with_reviews();
        }
        memos
    }

    /// Lets reviews find the memos of objects; called before there are any.
    pub(crate) fn share_with_reviews(&self) {
        self.by_uid.get_or_init(Mutex::default);
    }

    /// The operator's own memo.
    pub(crate) fn operator(&self) -> &Arc<Extensions> {
        &self.operator
    }

    /// The memo of an object, for a cycle that keeps it.
    pub(crate) fn of(&self, uid: &str) -> Arc<Extensions> {
        match self.by_uid.get() {
            Some(by_uid) if !uid.is_empty() => by_uid.lock().enter(uid, &self.operator),
            _ => self.fresh(),
        }
    }

    /// The memo for the review of an object; a separate one while the object does not exist yet.
    pub(crate) fn of_reviewed(&self, uid: &str, is_creation: bool) -> Arc<Extensions> {
        match self.by_uid.get() {
            Some(by_uid) if is_creation => by_uid.lock().find(uid).unwrap_or_else(|| self.fresh()),
            _ => self.of(uid),
        }
    }

    /// Keeps the values that handlers stored in a memo during a review, until a cycle needs it.
    pub(crate) fn keep_reviewed(&self, uid: &str, memo: &Arc<Extensions>) {
        if let Some(by_uid) = self.by_uid.get()
            && !memo.holds_same(&self.operator)
        {
            let former = by_uid.lock().keep(uid, memo);
            dismiss(former);
        }
    }

    /// The object is gone.
    pub(crate) fn forget(&self, uid: &str) {
        if let Some(by_uid) = self.by_uid.get() {
            let known = by_uid.lock().memos.remove(uid);
            // Not under the lock: it runs user code.
            dismiss(known);
        }
    }

    fn fresh(&self) -> Arc<Extensions> {
        Arc::new(self.operator.fork())
    }
}

impl ByUid {
    fn find(&self, uid: &str) -> Option<Arc<Extensions>> {
        self.memos.get(uid).and_then(|known| known.memo.upgrade())
    }

    fn enter(&mut self, uid: &str, operator: &Extensions) -> Arc<Extensions> {
        if let Some(memo) = self.find(uid) {
            return memo;
        }
        if self.memos.len() >= self.swept_at {
            self.memos.retain(|_, known| known.memo.strong_count() > 0);
            // At twice the size, so that sweeping costs each memo no more than creating it.
            self.swept_at = (self.memos.len() * 2).max(64);
        }
        let memo = Arc::new(operator.fork());
        self.memos.insert(uid.into(), Known { memo: Arc::downgrade(&memo), kept: None });
        memo
    }

    /// Keeps a memo; returns the one that was dropped for it, if any.
    fn keep(&mut self, uid: &str, memo: &Arc<Extensions>) -> Option<Arc<Extensions>> {
        // A memo that cannot be found by the uid was made for a creation, and is dropped with it.
        let known = self.memos.get_mut(uid)?;
        if known.kept.is_some() || !std::ptr::eq(known.memo.as_ptr(), Arc::as_ptr(memo)) {
            return None;
        }
        known.kept = Some(Arc::clone(memo));
        self.reviewed.push_back(uid.into());
        if self.reviewed.len() <= REVIEWED_MAX {
            return None;
        }
        let oldest = self.reviewed.pop_front()?;
        self.memos.get_mut(&oldest)?.kept.take()
    }
}

#[cfg(test)]
mod tests;
