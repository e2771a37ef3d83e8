//! Handlers that are registered by startup handlers.
//!
//! Front ends let their users declare handlers at run time. The engine requests them once, when all
//! startup handlers have succeeded, before it does anything else.

use std::collections::HashMap;
use std::sync::Arc;

use kopf_core::handler::{Handler, HandlerId, HandlerKind};
use kopf_core::index::Index;
use kopf_core::invoke::Indexes;

/// Returns the handlers that startup handlers have registered.
pub(super) type LateHandlers = Box<dyn FnOnce() -> Result<Vec<Handler>, String> + Send + Sync>;

/// Creates the index of a handler, if it has one.
pub(super) fn add_index(
    handler: &Handler,
    indexes: &Indexes,
    stores: &mut HashMap<HandlerId, Arc<Index>>,
) {
    if matches!(handler.kind, HandlerKind::Index) {
        let index = Arc::new(Index::default());
        indexes.insert(Arc::clone(&handler.id), Arc::clone(&index) as Arc<_>);
        stores.insert(Arc::clone(&handler.id), index);
    }
}
