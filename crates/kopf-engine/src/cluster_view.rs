//! The resources of the cluster, and which of them to watch.
//!
//! Gets data from discovery and from the watches of CRDs and namespaces; tells the reactor which
//! collections to follow. Makes no requests itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kopf_client::{Discovered, GroupVersion};
use kopf_core::handler::{Handler, HandlerKind};
use kopf_model::namespace::NamespacePattern;
use kopf_model::selector::Selected;
use kopf_model::{Object, Resource};
use serde_json::Value;

/// More versions than this are discovered all at once.
const VERSIONS_MAX: usize = 4;

/// The part of the cluster that is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Cluster,
    Namespaces(Vec<NamespacePattern>),
}

/// Group, version and plural: identifies a resource.
pub(crate) type ResourceId = (String, String, String);

/// What the cluster serves, for tasks other than the reactor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClusterSnapshot {
    pub(crate) resources: BTreeMap<ResourceId, Arc<Resource>>,
    pub(crate) namespaces: BTreeSet<Arc<str>>,
    /// The versions of the CRDs, by name: conversions are checked again when one has changed.
    pub(crate) definitions: BTreeMap<Arc<str>, Arc<str>>,
}

/// The resources of the cluster that are relevant for us.
#[derive(Default)]
pub(crate) struct ClusterView {
    resources: BTreeMap<ResourceId, Arc<Resource>>,
    namespaces: BTreeSet<Arc<str>>,
    definitions: BTreeMap<Arc<str>, Arc<str>>,
    /// Resources that CRDs announce but discovery does not list yet, or the reverse.
    promised: BTreeMap<ResourceId, Promise>,
    /// The selectors without resources, as of the last warning.
    unresolved: BTreeSet<String>,
    reported: BTreeSet<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Promise {
    Served,
    Withdrawn,
}

/// One collection to follow.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Desired {
    pub(crate) resource: Arc<Resource>,
    pub(crate) namespace: Option<Arc<str>>,
}

/// The result of comparing the handlers with the cluster.
#[derive(Debug, Default)]
pub(crate) struct Revision {
    pub(crate) watches: Vec<Desired>,
    pub(crate) waiting_for: Vec<String>,
}

impl ClusterView {
    /// The groups named by all handlers, or `None` if some handler is for any group.
    pub(crate) fn wanted_groups<'a>(
        handlers: impl IntoIterator<Item = &'a Arc<Handler>>,
    ) -> Option<BTreeSet<String>> {
        handlers
            .into_iter()
            .flat_map(|handler| handler.selector.iter().chain(&handler.children))
            .map(|selector| selector.group.clone())
            .collect()
    }

    /// The versions named by all handlers; `None` if a handler does not name one, or if there are
    /// many.
    pub(crate) fn wanted_versions<'a>(
        handlers: impl IntoIterator<Item = &'a Arc<Handler>>,
    ) -> Option<BTreeSet<GroupVersion>> {
        let versions = handlers
            .into_iter()
            .flat_map(|handler| handler.selector.iter().chain(&handler.children))
            .map(|selector| Some((selector.group.clone()?, selector.version.clone()?)));
        let versions: BTreeSet<GroupVersion> = versions.collect::<Option<_>>()?;
        (versions.len() <= VERSIONS_MAX).then_some(versions)
    }

    /// Replaces the known resources of some groups (or all) by the discovered ones.
    pub(crate) fn learn(&mut self, groups: Option<&BTreeSet<String>>, discovered: Discovered) {
        let unavailable: BTreeSet<String> = discovered.unavailable.into_iter().collect();
        self.resources.retain(|(group, version, _), _| {
            groups.is_some_and(|groups| !groups.contains(group))
                || unavailable.contains(&format!("{group}/{version}"))
        });
        for resource in discovered.resources {
            self.resources.insert(id_of(&resource), Arc::new(resource));
        }
        let resources = &self.resources;
        self.promised
            .retain(|id, promise| resources.contains_key(id) != (*promise == Promise::Served));
    }

    /// The current state.
    pub(crate) fn snapshot(&self) -> ClusterSnapshot {
        let (resources, namespaces) = (self.resources.clone(), self.namespaces.clone());
        ClusterSnapshot { resources, namespaces, definitions: self.definitions.clone() }
    }

    /// The group that a CRD adds to.
    pub(crate) fn group_of_crd(crd: &Object) -> Option<&str> {
        crd.value().get("spec")?.get("group")?.as_str()
    }

    /// Processes the state of a CRD; returns its group if it must be discovered again.
    ///
    /// A listed CRD that is already known needs nothing; a changed one may have other properties
    /// now.
    pub(crate) fn learn_crd(
        &mut self,
        crd: &Object,
        gone: bool,
        is_listed: bool,
    ) -> Option<String> {
        match gone {
            true => self.definitions.remove(crd.name()),
            false => self.definitions.insert(crd.name().into(), crd.resource_version().into()),
        };
        let spec = crd.value().get("spec")?;
        let group = spec.get("group")?.as_str()?;
        let plural = spec.get("names")?.get("plural")?.as_str()?;
        let established = !gone && has_condition(crd, "Established");
        let mut changed = false;
        for version in spec.get("versions")?.as_array()? {
            let Some(name) = version.get("name").and_then(Value::as_str) else { continue };
            let served = version.get("served").and_then(Value::as_bool).unwrap_or(false);
            let id = (group.to_owned(), name.to_owned(), plural.to_owned());
            let promise = match (established && served, gone || !served) {
                (true, _) => Promise::Served,
                (false, true) => Promise::Withdrawn,
                // Not established yet: an event about that will follow.
                (false, false) => continue,
            };
            if self.resources.contains_key(&id) != (promise == Promise::Served) {
                self.promised.insert(id, promise);
                changed = true;
            } else {
                self.promised.remove(&id);
                // The schema, the short names or the subresources may have changed.
                changed |= promise == Promise::Served && !is_listed;
            }
        }
        changed.then(|| group.to_owned())
    }

    /// The groups that must be discovered again, since discovery lags behind the CRDs.
    pub(crate) fn lagging(&self) -> BTreeSet<String> {
        self.promised.keys().map(|(group, ..)| group.clone()).collect()
    }

    /// Processes the state of a namespace; returns whether the set of served ones has changed.
    pub(crate) fn learn_namespace(&mut self, scope: &Scope, object: &Object, gone: bool) -> bool {
        let Scope::Namespaces(patterns) = scope else { return false };
        let name = object.name();
        if !patterns.iter().any(|pattern| pattern.matches(name)) {
            return false;
        }
        if gone { self.namespaces.remove(name) } else { self.namespaces.insert(name.into()) }
    }

    /// Serves the namespaces that are named exactly, if namespaces cannot be listed.
    pub(crate) fn assume_exact_namespaces(&mut self, scope: &Scope) -> bool {
        let Scope::Namespaces(patterns) = scope else { return false };
        let exact = patterns.iter().filter_map(NamespacePattern::exact);
        let before = self.namespaces.len();
        self.namespaces.extend(exact.map(Arc::from));
        before != self.namespaces.len()
    }

    /// Removes the namespaces that a complete list did not contain.
    pub(crate) fn retain_namespaces(&mut self, listed: &BTreeSet<Arc<str>>) -> bool {
        let before = self.namespaces.len();
        self.namespaces.retain(|name| listed.contains(name));
        before != self.namespaces.len()
    }

    /// Whether a note has not been logged before.
    pub(crate) fn is_first_report(&mut self, note: &str) -> bool {
        self.reported.insert(note.to_owned())
    }

    /// The collections of children of all handlers that name any.
    pub(crate) fn children(&self, handlers: &[Arc<Handler>], scope: &Scope) -> Vec<Desired> {
        let mut wanted = BTreeMap::new();
        for selector in handlers.iter().flat_map(|handler| &handler.children) {
            if let Selected::Resources(found) = selector.select(self.resources.values()) {
                wanted.extend(found.into_iter().map(|resource| (id_of(&resource), resource)));
            }
        }
        wanted.into_values().flat_map(|resource| self.collections(&resource, scope)).collect()
    }

    /// The collections that contain the objects of a resource.
    fn collections(&self, resource: &Arc<Resource>, scope: &Scope) -> Vec<Desired> {
        let of = |namespace| Desired { resource: Arc::clone(resource), namespace };
        match scope {
            Scope::Namespaces(_) if resource.namespaced => {
                self.namespaces.iter().map(|namespace| of(Some(Arc::clone(namespace)))).collect()
            }
            _ => vec![of(None)],
        }
    }

    /// Compares the handlers with the cluster; warns once about each new problem.
    pub(crate) fn revise(&mut self, handlers: &[Arc<Handler>], scope: &Scope) -> Revision {
        let mut wanted: BTreeMap<ResourceId, (Arc<Resource>, bool)> = BTreeMap::new();
        let mut waiting_for = BTreeSet::new();
        let mut notes = Vec::new();
        for handler in handlers {
            let Some(selector) = &handler.selector else { continue };
            let Some(keeps_state) = watched(&handler.kind) else { continue };
            for (resource, error) in selector.failures(self.resources.values()) {
                let failure = format!("The selector of {resource} has failed: {error}");
                if self.reported.insert(failure.clone()) {
                    tracing::error!("{failure}");
                }
            }
            match selector.select(self.resources.values()) {
                Selected::Ambiguous(found) => notes.push(format!(
                    "Ambiguous resources will not be served (try specifying API groups): \
                     {selector} => {}",
                    set_of(&found)
                )),
                Selected::Resources(found) if found.is_empty() => {
                    waiting_for.insert(selector.to_string());
                }
                Selected::Resources(found) => {
                    for resource in found {
                        let entry = wanted.entry(id_of(&resource)).or_insert((resource, false));
                        entry.1 |= keeps_state;
                    }
                }
            }
        }
        if let Some(warning) = self.warning_of(&waiting_for) {
            tracing::warn!("{warning}");
        }
        notes.extend(drop_unsuitable(&mut wanted));
        for note in notes {
            if self.is_first_report(&note) {
                tracing::warn!("{note}");
            }
        }
        let mut revision =
            Revision { waiting_for: waiting_for.into_iter().collect(), ..Revision::default() };
        for (resource, _) in wanted.into_values() {
            revision.watches.extend(self.collections(&resource, scope));
        }
        revision
    }

    /// The warning about all missing resources together, as in Kopf, whenever they are other ones.
    fn warning_of(&mut self, unresolved: &BTreeSet<String>) -> Option<String> {
        if self.unresolved == *unresolved {
            return None;
        }
        self.unresolved.clone_from(unresolved);
        let names: Vec<&str> = unresolved.iter().map(String::as_str).collect();
        let names = names.join(", ");
        (!names.is_empty()).then(|| {
            format!("Unresolved resources cannot be served (try creating their CRDs): {names}")
        })
    }
}

/// Removes the resources that do not support what their handlers need; returns what to warn about.
fn drop_unsuitable(wanted: &mut BTreeMap<ResourceId, (Arc<Resource>, bool)>) -> Vec<String> {
    let mut refused: BTreeMap<&str, Vec<Arc<Resource>>> = BTreeMap::new();
    wanted.retain(|_, (resource, keeps_state)| match refusal(resource, *keeps_state) {
        Some(reason) => {
            refused.entry(reason).or_default().push(Arc::clone(resource));
            false
        }
        None => true,
    });
    refused.into_iter().map(|(reason, resources)| reason.to_owned() + &set_of(&resources)).collect()
}

/// Resources in a log line, in the form of Kopf.
fn set_of(resources: &[Arc<Resource>]) -> String {
    let names: Vec<String> = resources.iter().map(ToString::to_string).collect();
    format!("{{{}}}", names.join(", "))
}

/// Whether a resource would not be served only because its discovery does not list `patch`.
pub(crate) fn is_doubtful(resource: &Resource, handlers: &[Arc<Handler>]) -> bool {
    let keeps_state = |handler: &Arc<Handler>| {
        watched(&handler.kind) == Some(true)
            && handler.selector.as_ref().is_some_and(|selector| selector.matches(resource))
    };
    refusal(resource, false).is_none()
        && refusal(resource, true).is_some()
        && handlers.iter().any(keeps_state)
}

/// Whether objects are watched for such a handler, and if so, whether state is stored on them.
fn watched(kind: &HandlerKind) -> Option<bool> {
    match kind {
        HandlerKind::Event | HandlerKind::Index => Some(false),
        HandlerKind::Create
        | HandlerKind::Update
        | HandlerKind::Delete { .. }
        | HandlerKind::Resume { .. }
        | HandlerKind::Field
        | HandlerKind::Daemon(_)
        | HandlerKind::Timer(_)
        | HandlerKind::Desired
        | HandlerKind::Observe => Some(true),
        _ => None,
    }
}

/// Why a resource cannot be served: the beginning of the warning.
fn refusal(resource: &Resource, keeps_state: bool) -> Option<&'static str> {
    let lacks = |verb: &str| !resource.verbs.is_empty() && !resource.verbs.contains(verb);
    if lacks("list") || lacks("watch") {
        return Some("Non-watchable resources will not be served: ");
    }
    (keeps_state && lacks("patch")).then_some("Non-patchable resources will not be served: ")
}

fn has_condition(object: &Object, kind: &str) -> bool {
    let conditions = || object.value().get("status")?.get("conditions")?.as_array();
    conditions().is_some_and(|conditions| {
        conditions.iter().any(|condition| {
            condition.get("type").and_then(Value::as_str) == Some(kind)
                && condition.get("status").and_then(Value::as_str) == Some("True")
        })
    })
}

fn id_of(resource: &Resource) -> ResourceId {
    (resource.group.clone(), resource.version.clone(), resource.plural.clone())
}

#[cfg(test)]
mod tests;
