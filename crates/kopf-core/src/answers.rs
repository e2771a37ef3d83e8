//! Slow callbacks within decisions.
//!
//! Decisions are plain functions, and so are the callbacks in them: they cannot wait. A slow
//! callback asks a [`Question`] with [`later`] or [`on_thread`] and returns an error for now. The
//! decision has no result then. The engine gets the answer while other objects are handled, and
//! makes the same decision again with all answers so far, until no question is left.
//!
//! A decision must give the same questions in the same order each time; everything that it changes
//! must be its own. Callbacks that return at once need nothing of this.

use std::any::Any;
use std::cell::RefCell;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use kopf_model::CallbackError;

use crate::handler::invoke::BoxFuture;

thread_local! {
    static DECIDING: RefCell<Option<Answers>> = const { RefCell::new(None) };
}

/// The value of any type that a callback returns, or its error.
pub type Answer = Result<Arc<dyn Any + Send + Sync>, CallbackError>;

/// How to get an answer.
pub enum Question {
    /// By a future.
    Future(BoxFuture<Answer>),
    /// By a function that blocks its thread.
    Blocking(Box<dyn FnOnce() -> Answer + Send>),
}

/// The answers for one decision.
#[derive(Default)]
pub struct Answers {
    /// In the order of the questions, each with the identity of its callback.
    known: Vec<(u64, Answer)>,
    next: usize,
    question: Option<(u64, Question)>,
}

/// The identity of a callback, to recognise its question in a repeated decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallbackId(u64);

impl CallbackId {
    /// An identity from the parts that distinguish a callback from others.
    pub fn of(parts: impl Hash) -> Self {
        let mut hasher = std::hash::DefaultHasher::new();
        parts.hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// An open question, to be answered with [`Answers::add`].
pub struct Open {
    /// How to get the answer.
    pub question: Question,
    id: u64,
}

impl Answers {
    /// Makes a decision with the known answers.
    ///
    /// # Errors
    /// Fails with the first question that has no answer yet.
    pub fn decide<T>(&mut self, decision: impl FnOnce() -> T) -> Result<T, Open> {
        self.next = 0;
        let scope = Scope::enter(std::mem::take(self));
        let decided = decision();
        *self = scope.leave();
        match self.question.take() {
            None => Ok(decided),
            Some((id, question)) => Err(Open { question, id }),
        }
    }

    /// Adds the answer to a question.
    pub fn add(&mut self, id: CallbackId, answer: Answer) {
        self.known.push((id.0, answer));
    }

    /// The next answer; `None` if it is unknown or that of another callback.
    fn next(&mut self, id: CallbackId) -> Option<Answer> {
        match self.known.get(self.next) {
            Some((known, answer)) if *known == id.0 => {
                self.next += 1;
                Some(answer.clone())
            }
            // Another callback than before: the decision depends on something that has changed.
            _ => {
                self.known.truncate(self.next);
                None
            }
        }
    }
}

impl Open {
    /// The callback that has asked.
    #[must_use]
    pub fn id(&self) -> CallbackId {
        CallbackId(self.id)
    }
}

/// The answers of the decision on this thread, until it ends.
struct Scope(Option<Option<Answers>>);

impl Scope {
    fn enter(answers: Answers) -> Self {
        Self(Some(DECIDING.replace(Some(answers))))
    }

    fn leave(mut self) -> Answers {
        let outer = self.0.take().flatten();
        DECIDING.replace(outer).unwrap_or_default()
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        // After a panic.
        if let Some(outer) = self.0.take() {
            DECIDING.replace(outer);
        }
    }
}

/// Whether a decision is being made on this thread, so that callbacks may use [`later`].
#[must_use]
pub fn is_deciding() -> bool {
    DECIDING.with_borrow(Option::is_some)
}

/// Whether the decision on this thread waits for an answer, so that its values are not final.
#[must_use]
pub fn is_waiting() -> bool {
    let waits = |answers: &Answers| answers.question.is_some();
    DECIDING.with_borrow(|deciding| deciding.as_ref().is_some_and(waits))
}

/// Answers a callback with a future, which the engine awaits.
///
/// # Errors
/// Fails when the future does, and until it has ended. Fails outside decisions.
pub fn later<T, F>(id: CallbackId, ask: impl FnOnce() -> F) -> Result<T, CallbackError>
where
    T: Clone + Send + Sync + 'static,
    F: Future<Output = Result<T, CallbackError>> + Send + 'static,
{
    answered(id, || {
        let asked = ask();
        Question::Future(Box::pin(async move { asked.await.map(|value| Arc::new(value) as _) }))
    })
}

/// Answers a callback with a function that may block, which the engine runs on another thread. Runs
/// it at once outside decisions.
///
/// # Errors
/// Fails when the function does, and until it has returned.
pub fn on_thread<T, F>(id: CallbackId, function: F) -> Result<T, CallbackError>
where
    T: Clone + Send + Sync + 'static,
    F: FnOnce() -> Result<T, CallbackError> + Send + 'static,
{
    if !is_deciding() {
        return function();
    }
    answered(id, || {
        Question::Blocking(Box::new(move || function().map(|value| Arc::new(value) as _)))
    })
}

fn answered<T: Clone + 'static>(
    id: CallbackId,
    ask: impl FnOnce() -> Question,
) -> Result<T, CallbackError> {
    let unanswered = || Err(CallbackError::new("the callback has not answered yet"));
    let known = DECIDING.with_borrow_mut(|deciding| {
        let Some(answers) = deciding else {
            return Err(CallbackError::new("a slow callback was called outside a decision"));
        };
        // Only one question at a time: the others may depend on its answer.
        if answers.question.is_some() {
            return unanswered();
        }
        let Some(answer) = answers.next(id) else {
            answers.question = Some((id.0, ask()));
            return unanswered();
        };
        answer
    })?;
    let value = known.downcast_ref::<T>().cloned();
    value.ok_or_else(|| CallbackError::new("two slow callbacks have the same identity"))
}

#[cfg(test)]
mod tests;
