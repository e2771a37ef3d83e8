//! The object and the occasion that a handler is called for.

use std::sync::Arc;

use kopf_model::{Diff, Essence, FieldPath, Object, Resource, Version};
use serde_json::Value;

/// The object that a handler is called for.
#[derive(Clone)]
pub struct Subject {
    /// Its resource.
    pub resource: Arc<Resource>,
    /// Its newest known state.
    pub object: Object,
}

/// What happened.
#[derive(Clone)]
pub enum Occasion {
    /// A raw event of the watch stream.
    Event {
        /// The type; `None` for objects from a list.
        kind: Option<EventKind>,
    },
    /// A detected change.
    Change(Change),
    /// The object must be indexed.
    Index,
    /// The children of the object are requested.
    Desired,
    /// A daemon or a timer runs; the live view follows the object.
    Background {
        /// A view that always shows the newest state.
        live: Live,
    },
    /// An admission request.
    Admission(Arc<Review>),
    /// The object is requested in another version.
    Conversion,
    /// A phase of the operator itself.
    Activity(Activity),
}

/// A detected change of an object, compared with its last-handled state.
#[derive(Clone, Debug)]
pub struct Change {
    /// Why the handlers are called.
    pub reason: Reason,
    /// Whether the object was first seen in a list after the start.
    pub initial: bool,
    /// The last-handled essence (or the field, for field handlers).
    pub old: Option<Essence>,
    /// The current essence (or the field).
    pub new: Option<Essence>,
    /// The differences.
    pub diff: Arc<Diff>,
}

/// Why changing handlers are called or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The object has never been handled.
    Create,
    /// The object has changed since it was last handled.
    Update,
    /// Deletion was requested, and we hold the finalizer.
    Delete,
    /// The object is unchanged, but new to this process.
    Resume,
    /// Nothing essential has changed.
    Noop,
    /// The object is being deleted and is not held by us.
    Free,
    /// The object is gone from the cluster.
    Gone,
}

/// The type of a raw watch event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// `ADDED`
    Added,
    /// `MODIFIED`
    Modified,
    /// `DELETED`
    Deleted,
}

/// A view of an object that is always the newest known state.
#[derive(Clone)]
pub struct Live(Arc<parking_lot::RwLock<Latest>>);

/// The content of a [`Live`]. Written by cycles and by the daemon's own writes, which may overtake
/// each other; read by the daemon.
struct Latest {
    object: Object,
    /// No older state is shown, if versions are numbers.
    version: Version,
}

/// An admission request, as far as handlers may read it.
#[derive(Clone, Debug)]
pub struct Review {
    /// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    pub operation: String,
    /// The subresource, if the request is about one.
    pub subresource: Option<String>,
    /// Whether nothing will be persisted.
    pub dry_run: bool,
    /// The user who sent the request.
    pub user_info: Value,
    /// The HTTP headers of the review request.
    pub headers: Vec<(String, String)>,
    /// The old object, for updates and deletions.
    pub old: Option<Object>,
    /// The new object, for creations and updates.
    pub new: Option<Object>,
    /// The differences.
    pub diff: Arc<Diff>,
}

/// A phase of the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Activity {
    /// Before anything connects to the cluster.
    Startup,
    /// After everything else has stopped.
    Cleanup,
    /// Getting credentials.
    Authentication,
    /// Responding to a liveness probe.
    Probe,
}

impl Change {
    /// The same change as a handler of one field sees it.
    #[must_use]
    pub fn reduce(&self, field: &FieldPath) -> Self {
        let resolve = |side: &Option<Essence>| {
            side.as_ref().and_then(|side| field.resolve(side)).cloned().map(Essence::from)
        };
        Self {
            reason: self.reason,
            initial: self.initial,
            old: resolve(&self.old),
            new: resolve(&self.new),
            diff: Arc::new(self.diff.reduce(field)),
        }
    }
}

impl Live {
    /// Creates a view that starts with this state.
    #[must_use]
    pub fn new(object: Object) -> Self {
        let version = Version::of(&object);
        let latest = Latest { object: object.at_rest(), version };
        Self(Arc::new(parking_lot::RwLock::new(latest)))
    }

    /// The newest known state; its tree, if the handler builds one, is dropped with it.
    #[must_use]
    pub fn get(&self) -> Object {
        self.0.read().object.detached()
    }

    /// Replaces the state unless it is newer; called by the engine when it sees a state.
    ///
    /// The response to a write arrives before the events of earlier writes by others.
    pub fn set(&self, object: Object) {
        let version = Version::of(&object);
        let mut latest = self.0.write();
        if version.is_older_than(latest.version) {
            return;
        }
        *latest = Latest { object: object.at_rest(), version };
    }

    /// Accepts any next state, because the server was restored from a backup.
    pub fn doubt(&self) {
        self.0.write().version = Version::default();
    }
}

impl EventKind {
    /// The type as in the watch stream.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

impl Activity {
    /// Kopf's name of the activity.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Cleanup => "cleanup",
            Self::Authentication => "authentication",
            Self::Probe => "probe",
        }
    }
}

impl Reason {
    /// All reasons, those with handlers first.
    pub const ALL: [Self; 7] = [
        Self::Create,
        Self::Update,
        Self::Delete,
        Self::Resume,
        Self::Noop,
        Self::Free,
        Self::Gone,
    ];

    /// Whether handlers are called for this reason at all.
    #[must_use]
    pub fn has_handlers(self) -> bool {
        matches!(self, Self::Create | Self::Update | Self::Delete | Self::Resume)
    }

    /// The reason for a stored purpose.
    #[must_use]
    pub fn from_purpose(purpose: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == purpose)
    }

    /// The word stored as `purpose` and passed to handlers.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Resume => "resume",
            Self::Noop => "noop",
            Self::Free => "free",
            Self::Gone => "gone",
        }
    }
}

#[cfg(test)]
mod tests;
