//! Kinds of objects from the cluster's discovery, and selectors to choose among them.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::callback::CallbackError;

/// One resource of a cluster, such as `deployments.v1.apps`.
///
/// Equality and hash use only group, version and plural.
#[derive(Clone, Debug)]
pub struct Resource {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The plural name as in URLs.
    pub plural: String,
    /// The kind.
    pub kind: String,
    /// The singular name.
    pub singular: String,
    /// The short names.
    pub shortcuts: BTreeSet<String>,
    /// The categories.
    pub categories: BTreeSet<String>,
    /// The subresources, such as `status`.
    pub subresources: BTreeSet<String>,
    /// Whether the objects are namespaced.
    pub namespaced: bool,
    /// Whether this is the preferred version of its group.
    pub preferred: bool,
    /// The verbs that the server offers.
    pub verbs: BTreeSet<String>,
}

impl Resource {
    /// Creates a cluster-wide resource in `v1` of its group, known without discovery.
    #[must_use]
    pub fn cluster_wide(group: &str, plural: &str, kind: &str) -> Self {
        Self {
            group: group.into(),
            version: "v1".into(),
            plural: plural.into(),
            kind: kind.into(),
            singular: kind.to_lowercase(),
            shortcuts: BTreeSet::new(),
            categories: BTreeSet::new(),
            subresources: BTreeSet::new(),
            namespaced: false,
            preferred: true,
            verbs: BTreeSet::new(),
        }
    }
}

/// Selects the resources of a handler; all given criteria must match.
#[derive(Clone, Default)]
pub struct Selector {
    /// The group, if restricted.
    pub group: Option<String>,
    /// The version; without it only preferred versions match.
    pub version: Option<String>,
    /// The name-like criterion.
    pub name: SelectorName,
}

/// The name-like criterion of a selector.
#[derive(Clone, Default)]
pub enum SelectorName {
    /// Kind, plural, singular or any short name.
    Any(String),
    /// The kind only.
    Kind(String),
    /// The plural only.
    Plural(String),
    /// The singular only.
    Singular(String),
    /// A short name only.
    Shortcut(String),
    /// A category.
    Category(String),
    /// Everything except Kubernetes events.
    #[default]
    Everything,
    /// Resources that the function accepts; not restricted to preferred versions.
    Matching(Arc<SelectFn>),
}

/// Tells whether a resource is selected.
pub type SelectFn = dyn Fn(&Resource) -> Result<bool, CallbackError> + Send + Sync;

impl PartialEq for Resource {
    fn eq(&self, other: &Self) -> bool {
        (&self.group, &self.version, &self.plural) == (&other.group, &other.version, &other.plural)
    }
}

impl Eq for Resource {}

impl std::hash::Hash for Resource {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (&self.group, &self.version, &self.plural).hash(state);
    }
}

/// `plural.version.group`, without empty parts.
impl std::fmt::Display for Resource {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}.{}", self.plural, self.version)?;
        if !self.group.is_empty() {
            write!(formatter, ".{}", self.group)?;
        }
        Ok(())
    }
}
