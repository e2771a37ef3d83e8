//! What all parts of a running engine share.

use std::collections::HashMap;
use std::sync::Arc;

use kopf_client::Cluster;
use kopf_core::handler::{Handler, HandlerId};
use kopf_core::index::Index;
use kopf_core::invoke;
use kopf_core::lifecycle::Lifecycle;
use kopf_core::logtext::Line;
use kopf_core::occasion::Subject;
use kopf_core::plan::Agenda;
use kopf_core::registry::{Registry, ResourceHandlers};
use kopf_core::settings::{LeadershipMode, Settings, Storages};
use kopf_model::{EssenceScanner, Object, Resource, Selector};
use tokio::sync::watch;

use crate::callbacks::has_callbacks;
use crate::children::{ChildStore, Family};
use crate::cluster_view::ClusterSnapshot;
use crate::context::background_tasks::BackgroundTasks;
use crate::context::notice::Notices;
use crate::context::runtime::Runtime;
use crate::context::tuning::Marks;
use crate::leadership::Tenure;
use crate::write::loops::Loops;

/// What all parts of a running engine share.
pub(crate) struct Shared {
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) cluster: Cluster,
    pub(crate) registry: Registry,
    /// How state is stored on objects, as configured at the start.
    pub(crate) marks: Marks,
    /// The indexes, written by cycles.
    pub(crate) stores: HashMap<HandlerId, Arc<Index>>,
    pub(crate) lifecycle: Lifecycle,
    /// Whether this replica may act.
    pub(crate) tenure: Arc<Tenure>,
    /// The children of all objects; written by the reactor and by cycles that apply them.
    pub(crate) children: Arc<ChildStore>,
    pub(crate) loops: Loops,
    /// The resources of the cluster; written by the reactor for tasks that run alongside it.
    pub(crate) snapshots: watch::Sender<ClusterSnapshot>,
    /// The daemons and timers of all objects.
    pub(crate) background: BackgroundTasks,
    /// Sends notices to the reactor, from cycles, daemons and discovery.
    pub(crate) notices: Notices,
}

/// A watched resource with its handlers and derived data.
pub(crate) struct Served {
    pub(crate) resource: Arc<Resource>,
    pub(crate) handlers: ResourceHandlers,
    pub(crate) storages: Storages,
    /// The annotations with our own records: exact keys, or prefixes with a slash.
    pub(crate) own_annotations: Vec<String>,
    pub(crate) scanner: EssenceScanner,
    pub(crate) finalizer: String,
    /// Whether an unchanged essence means that there is nothing to do.
    pub(crate) essence_decides: bool,
    /// Whether a handler may be called because of something that is not in the essence or its
    /// fingerprint.
    pub(crate) looks_beyond_essence: bool,
    /// The kinds of children that must be listed before a cycle starts. Desired children and
    /// observers wait by themselves, and do not delay the others.
    pub(crate) children: Vec<Selector>,
    /// Whether any handler has functions as filters or delays, or the lifecycle is a function.
    pub(crate) has_callbacks: bool,
    /// Whether objects are shared with other replicas, and may be reassigned at any time.
    pub(crate) is_shared: bool,
    /// Whether objects are remembered across restarts, by name if they have work left.
    pub(crate) is_saved: bool,
}

impl Served {
    pub(crate) fn new(resource: Arc<Resource>, shared: &Shared) -> Self {
        let handlers = shared.registry.for_resource(&resource);
        let Marks { storages, finalizer, .. } = shared.marks.clone();
        let mut own_annotations = storages.progress.own_annotations();
        let notes = storages.diffbase.own_annotations(&Object::from_value(serde_json::Value::Null));
        own_annotations.extend(notes.clone());
        let scanner = EssenceScanner::new(handlers.extra_fields.clone(), own_annotations.clone())
            .with_notes(notes, storages.diffbase.own_fields());
        let mut conditional = handlers.changing.iter().chain(&handlers.spawning);
        let looks_beyond_essence = storages.diffbase.adds_fields()
            || conditional.any(|handler| looks_beyond(handler, &scanner));
        let essence_decides = handlers.watching.is_empty()
            && handlers.desired.is_empty()
            && handlers.indexing.is_empty()
            && !looks_beyond_essence;
        let groups =
            [&handlers.watching, &handlers.changing, &handlers.spawning, &handlers.indexing];
        let has_callbacks = matches!(shared.lifecycle, Lifecycle::Custom(_))
            || groups.into_iter().flatten().any(|it| has_callbacks(it));
        let looking = handlers.watching.iter().chain(&handlers.changing).chain(&handlers.spawning);
        let children = looking.flat_map(|handler| handler.children.clone()).collect();
        Self {
            resource,
            handlers,
            storages,
            own_annotations,
            scanner,
            finalizer,
            essence_decides,
            looks_beyond_essence,
            children,
            has_callbacks,
            is_shared: shared.runtime.context.settings.read().leadership.mode
                == LeadershipMode::Shards,
            is_saved: false,
        }
    }

    /// Whether an annotation is one of our own records.
    pub(crate) fn is_note(&self, annotation: &str) -> bool {
        self.scanner.is_own(annotation)
    }

    /// Whether only our share of the objects is watched. Indexes are complete on every replica.
    pub(crate) fn is_parted(&self) -> bool {
        self.is_shared && self.handlers.indexing.is_empty()
    }

    /// Whether the newest body must be kept while the object is idle.
    pub(crate) fn keeps_bodies(&self) -> bool {
        let ResourceHandlers { spawning, indexing, desired, .. } = &self.handlers;
        let needed = [spawning, indexing, desired];
        self.is_shared || needed.into_iter().any(|handlers| !handlers.is_empty())
    }
}

impl Shared {
    /// Logs a line about an object within its span, and posts it as an event if enabled.
    pub(crate) fn log(&self, subject: &Subject, line: &Line) {
        self.runtime.log(subject, line);
    }

    /// The children of an object, for its handlers; `None` if no children are watched.
    pub(crate) fn family(&self, subject: &Subject) -> Option<Arc<dyn invoke::Family>> {
        let family = || {
            let owner = subject.object.uid().to_owned();
            let (children, context) = (Arc::clone(&self.children), self.runtime.context.clone());
            Arc::new(Family { children, context, owner }) as _
        };
        self.children.is_used().then(family)
    }

    /// A copy of the current settings.
    pub(crate) fn settings(&self) -> Settings {
        self.runtime.context.settings.read().clone()
    }
}

/// The span of all work on one object.
pub(crate) fn object_span(subject: &Subject) -> tracing::Span {
    let object = &subject.object;
    tracing::info_span!(
        target: "kopf.objects",
        "object",
        apiVersion = object.api_version(),
        kind = object.kind(),
        namespace = object.namespace(),
        name = object.name(),
        uid = object.uid(),
    )
}

/// The span of the work on one cause, for traces; disabled if there is nothing to do.
pub(crate) fn cause_span(agenda: &Agenda<'_>) -> tracing::Span {
    match agenda.change.as_ref().filter(|change| change.reason.has_handlers()) {
        Some(change) => tracing::info_span!(
            target: "kopf.causes",
            "cause",
            reason = change.reason.as_str(),
            handlers = agenda.selected.len(),
        ),
        None => tracing::Span::none(),
    }
}

/// Whether the conditions of a handler may depend on more than the fingerprint covers.
fn looks_beyond(handler: &Handler, scanner: &EssenceScanner) -> bool {
    let filters = &handler.filters;
    let calls = |filter: &kopf_core::filter::MetaFilter| {
        matches!(filter, kopf_core::filter::MetaFilter::Matches(_))
    };
    filters.when.is_some()
        || filters.labels.iter().chain(&filters.annotations).any(|(_, filter)| calls(filter))
        || filters.annotations.iter().any(|(key, _)| !scanner.covers_annotation(key))
        || matches!(filters.value, Some(kopf_core::filter::ValueFilter::Matches(_)))
}
