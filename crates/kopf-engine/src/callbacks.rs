//! What filters, lifecycles and other callbacks see besides their arguments: the memo and the patch
//! of the object; for lifecycles, also the object and its change.
//!
//! Set during a cycle of a resource that has callbacks, and during reviews. Read by front ends
//! whose callbacks get the same arguments as their handlers.
//!
//! Also waits for callbacks that are slow: see [`kopf_core::answers`]. Everything in the engine that
//! calls callbacks is a decision made here, so that a slow callback delays only its own object.

use std::sync::Arc;

use kopf_core::answers::{Answer, Answers, Question};
use kopf_core::filter::{MetaFilter, ValueFilter};
use kopf_core::handler::{Delay, Handler, HandlerKind};
use kopf_core::invoke::{CallbackError, Extensions};
use kopf_core::lifecycle::Lifecycle;
use kopf_core::occasion::{Change, Subject};
use kopf_model::Patch;
use parking_lot::Mutex;

tokio::task_local! {
    static CONTEXT: Arc<CallbackContext>;
    static CHOOSING: Choosing;
}

/// The data of the object that a callback is called for.
pub struct CallbackContext {
    /// Values kept in memory for the object.
    pub memo: Arc<Extensions>,
    /// The changes to the object.
    pub patch: Arc<Mutex<Patch>>,
}

/// What a lifecycle chooses handlers for.
#[derive(Clone)]
pub struct Choosing {
    /// The object.
    pub subject: Subject,
    /// What happened to it.
    pub change: Change,
}

/// What the lifecycle running in this task chooses handlers for; `None` outside lifecycles.
#[must_use]
pub fn choosing() -> Option<Choosing> {
    CHOOSING.try_with(Clone::clone).ok()
}

/// Lets a lifecycle choose; only user functions need the context.
pub(crate) fn choose<T>(
    lifecycle: &Lifecycle,
    choosing: impl FnOnce() -> Choosing,
    choose: impl FnOnce() -> T,
) -> T {
    match lifecycle {
        Lifecycle::Custom(_) => CHOOSING.sync_scope(choosing(), choose),
        _ => choose(),
    }
}

/// The context of the callback running in this task; `None` outside cycles and reviews.
#[must_use]
pub fn context() -> Option<Arc<CallbackContext>> {
    CONTEXT.try_with(Arc::clone).ok()
}

/// Runs a future whose callbacks have this context.
pub async fn within<T>(context: Arc<CallbackContext>, future: impl Future<Output = T>) -> T {
    CONTEXT.scope(context, future).await
}

/// Makes a decision, and repeats it after every answer of a slow callback.
pub(crate) async fn decide<T>(mut decision: impl FnMut() -> T) -> T {
    let mut answers = Answers::default();
    loop {
        match answers.decide(&mut decision) {
            Ok(decided) => return decided,
            Err(open) => {
                let id = open.id();
                answers.add(id, Box::pin(answer(open.question)).await);
            }
        }
    }
}

/// The same for a decision that consumes its input, which is copied only if there are callbacks.
pub(crate) async fn decide_from<I: Clone, T>(
    has_callbacks: bool,
    input: I,
    mut decision: impl FnMut(I) -> T,
) -> T {
    match has_callbacks {
        true => decide(|| decision(input.clone())).await,
        false => decision(input),
    }
}

/// Gets an answer; a panic of the callback is propagated to its cycle.
async fn answer(question: Question) -> Answer {
    let function = match question {
        Question::Future(future) => return future.await,
        Question::Blocking(function) => function,
    };
    let dispatch = tracing::dispatcher::get_default(tracing::Dispatch::clone);
    let span = tracing::Span::current();
    let asked = tokio::task::spawn_blocking(move || {
        tracing::dispatcher::with_default(&dispatch, || span.in_scope(function))
    });
    match asked.await {
        Ok(answer) => answer,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(CallbackError::new("the operator is exiting")),
    }
}

/// Whether a handler has callbacks besides its function.
pub(crate) fn has_callbacks(handler: &Handler) -> bool {
    let filters = &handler.filters;
    let delay = match &handler.kind {
        HandlerKind::Daemon(options) => Some(&options.initial_delay),
        HandlerKind::Timer(options) => Some(&options.initial_delay),
        _ => None,
    };
    let values = [&filters.value, &filters.old, &filters.new];
    let metadata = filters.labels.iter().chain(&filters.annotations);
    filters.when.is_some()
        || metadata.into_iter().any(|(_, filter)| matches!(filter, MetaFilter::Matches(_)))
        || values.into_iter().any(|filter| matches!(filter, Some(ValueFilter::Matches(_))))
        || matches!(delay, Some(Delay::Computed(_)))
}
