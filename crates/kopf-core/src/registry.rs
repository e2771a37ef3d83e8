//! All handlers of an operator, in registration order.
//!
//! Knows nothing about objects: only finds the handlers of a resource.

use std::collections::BTreeSet;
use std::sync::Arc;

use kopf_model::{FieldPath, Resource};

use crate::handler::{Family, Handler, HandlerKind};
use crate::occasion::Activity;

/// All handlers of an operator.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    handlers: Vec<Arc<Handler>>,
}

/// The handlers of one resource, by family.
#[derive(Clone, Debug, Default)]
pub struct ResourceHandlers {
    /// For raw events.
    pub watching: Vec<Arc<Handler>>,
    /// For detected changes.
    pub changing: Vec<Arc<Handler>>,
    /// Daemons and timers.
    pub spawning: Vec<Arc<Handler>>,
    /// Indexes.
    pub indexing: Vec<Arc<Handler>>,
    /// Desired children.
    pub desired: Vec<Arc<Handler>>,
    /// For admission requests.
    pub admission: Vec<Arc<Handler>>,
    /// The fields of interest of all handlers except indexes and admission: parts of the essence.
    pub extra_fields: Vec<FieldPath>,
}

impl Registry {
    /// Creates an empty registry.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a handler.
    pub fn add(&mut self, handler: Handler) -> Arc<Handler> {
        let handler = Arc::new(handler);
        self.handlers.push(Arc::clone(&handler));
        handler
    }

    /// All handlers.
    pub fn iter(&self) -> std::slice::Iter<'_, Arc<Handler>> {
        self.handlers.iter()
    }

    /// How many handlers there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.handlers.len()
    }

    /// Whether there are no handlers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.handlers.is_empty()
    }

    /// The handlers of a phase of the operator.
    #[must_use]
    pub fn activities(&self, activity: Activity) -> Vec<Arc<Handler>> {
        let is_for = |handler: &&Arc<Handler>| match handler.kind {
            HandlerKind::Startup => activity == Activity::Startup,
            HandlerKind::Cleanup => activity == Activity::Cleanup,
            HandlerKind::Login => activity == Activity::Authentication,
            HandlerKind::Probe => activity == Activity::Probe,
            _ => false,
        };
        self.handlers.iter().filter(is_for).cloned().collect()
    }

    /// The handlers of a resource.
    #[must_use]
    pub fn for_resource(&self, resource: &Resource) -> ResourceHandlers {
        let mut found = ResourceHandlers::default();
        let mut fields = BTreeSet::new();
        for handler in self.handlers.iter().filter(|handler| handler.is_for(resource)) {
            let family = handler.kind.family();
            let group = match family {
                Family::Watching => &mut found.watching,
                Family::Changing => &mut found.changing,
                Family::Spawning => &mut found.spawning,
                Family::Indexing => &mut found.indexing,
                Family::Desired => &mut found.desired,
                Family::Admission => &mut found.admission,
                Family::Conversion | Family::Activities => continue,
            };
            group.push(Arc::clone(handler));
            let is_essential = !matches!(family, Family::Indexing | Family::Admission);
            if let Some(field) = handler.filters.field.as_ref().filter(|_| is_essential) {
                fields.insert(field.clone());
            }
        }
        found.extra_fields = fields.into_iter().collect();
        found
    }

    /// The handlers whose selectors decide which resources are watched.
    pub fn watched(&self) -> impl Iterator<Item = &Arc<Handler>> {
        self.handlers.iter().filter(|handler| {
            let family = handler.kind.family();
            !family.is_asked() && family != Family::Activities
        })
    }

    /// The handlers that validate or mutate objects before the cluster stores them.
    pub fn admission(&self) -> impl Iterator<Item = &Arc<Handler>> {
        self.handlers.iter().filter(|handler| handler.kind.family() == Family::Admission)
    }

    /// The handlers that convert objects between versions.
    pub fn conversions(&self) -> impl Iterator<Item = &Arc<Handler>> {
        self.handlers.iter().filter(|handler| handler.kind.family() == Family::Conversion)
    }

    /// The handlers whose resources must be discovered: all except those of the operator itself.
    pub fn about_resources(&self) -> impl Iterator<Item = &Arc<Handler>> {
        self.handlers.iter().filter(|handler| handler.kind.family() != Family::Activities)
    }
}

impl ResourceHandlers {
    /// Whether only admission concerns the resource, so that it need not be watched.
    #[must_use]
    pub fn needs_no_watch(&self) -> bool {
        let Self { watching, changing, spawning, indexing, desired, .. } = self;
        [watching, changing, spawning, indexing, desired].into_iter().all(Vec::is_empty)
    }

    /// Whether objects must be patched to store the state of handlers.
    #[must_use]
    pub fn keeps_state(&self) -> bool {
        !self.changing.is_empty() || !self.spawning.is_empty() || !self.desired.is_empty()
    }
}

impl FromIterator<Handler> for Registry {
    fn from_iter<I: IntoIterator<Item = Handler>>(handlers: I) -> Self {
        Self { handlers: handlers.into_iter().map(Arc::new).collect() }
    }
}

/// Drops repeated registrations: the same function under the same id counts once, the first one
/// wins.
#[must_use]
pub fn deduplicate(handlers: Vec<Arc<Handler>>) -> Vec<Arc<Handler>> {
    if handlers.len() < 2 {
        return handlers;
    }
    let mut seen = BTreeSet::new();
    handlers
        .into_iter()
        .filter(|handler| seen.insert((handler.invoke.identity(), Arc::clone(&handler.id))))
        .collect()
}

#[cfg(test)]
mod tests;
