//! What filters and other callbacks see besides their arguments: the memo and the patch of the
//! object.
//!
//! Set for the time of a cycle of a resource that has callbacks, and for reviews. Read by front ends
//! whose callbacks get the same arguments as their handlers.

use std::sync::Arc;

use kopf_core::filter::{MetaFilter, ValueFilter};
use kopf_core::handler::{Delay, Handler, HandlerKind};
use kopf_core::invoke::Extensions;
use kopf_model::Patch;
use parking_lot::Mutex;

tokio::task_local! {
    static CONTEXT: Arc<CallbackContext>;
}

/// What belongs to the object that a callback is called for.
pub struct CallbackContext {
    /// Values kept in memory beside the object.
    pub memo: Arc<Extensions>,
    /// The changes to the object.
    pub patch: Arc<Mutex<Patch>>,
}

/// The context of the callback that runs in this task; none outside of cycles and reviews.
#[must_use]
pub fn context() -> Option<Arc<CallbackContext>> {
    CONTEXT.try_with(Arc::clone).ok()
}

/// Runs a future whose callbacks have this context.
pub async fn within<T>(context: Arc<CallbackContext>, future: impl Future<Output = T>) -> T {
    CONTEXT.scope(context, future).await
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
