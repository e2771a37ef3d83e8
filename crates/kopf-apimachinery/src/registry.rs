//! Which resources exist: built-in ones from recorded discovery data, custom ones from CRDs.
//!
//! Immutable; the server swaps in a new registry when CRDs change. Does not know about requests.

use std::sync::{Arc, OnceLock};

use foldhash::{HashMap, HashMapExt};
use serde::Deserialize;

use crate::resource::{ResourceInfo, Subresource};
use crate::status_error::qualified;

/// All served resources, with lookups.
pub struct Registry {
    // The built-in resources below the custom ones; shared, since every server has them.
    below: Option<Arc<Registry>>,
    resources: Vec<Arc<ResourceInfo>>,
    by_version: HashMap<String, HashMap<String, HashMap<String, Arc<ResourceInfo>>>>,
    by_table: HashMap<Arc<str>, Arc<ResourceInfo>>,
    groups: Vec<Group>,
    // Changes whenever the set of resources changes; feeds ETags.
    revision: u64,
    // The text of each group; filled by discovery on first use.
    texts: OnceLock<HashMap<String, GroupText>>,
}

/// One API group with its versions, preferred first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The group's name, empty for the core group.
    pub name: String,
    /// Its versions, preferred first.
    pub versions: Vec<String>,
}

/// The entry of one group in the aggregated discovery document.
#[derive(Clone, Debug)]
pub struct GroupText {
    /// The entry as JSON.
    pub json: Arc<str>,
    /// A digest of the entry.
    pub digest: [u8; 32],
}

impl Registry {
    /// The built-in resources only.
    pub fn builtin() -> Arc<Self> {
        static BUILTIN: OnceLock<Arc<Registry>> = OnceLock::new();
        Arc::clone(BUILTIN.get_or_init(|| Arc::new(Self::new(None, recorded(), 0))))
    }

    /// The built-in resources and these custom ones.
    pub fn with_custom(custom: Vec<Arc<ResourceInfo>>, revision: u64) -> Self {
        Self::new(Some(Self::builtin()), custom, revision)
    }

    fn new(below: Option<Arc<Self>>, added: Vec<Arc<ResourceInfo>>, revision: u64) -> Self {
        let inherited = below.as_deref();
        let mut registry = Self {
            by_version: HashMap::new(),
            by_table: HashMap::new(),
            groups: inherited.map(|it| it.groups.clone()).unwrap_or_default(),
            resources: inherited.map(|it| it.resources.clone()).unwrap_or_default(),
            revision,
            texts: OnceLock::new(),
            below,
        };
        for resource in &added {
            registry.add(Arc::clone(resource));
        }
        for group in &mut registry.groups {
            if added.iter().any(|resource| resource.group == group.name && resource.is_custom()) {
                group.versions.sort_by(|one, two| compare_versions(one, two).reverse());
            }
        }
        registry.resources.extend(added);
        registry
    }

    fn add(&mut self, resource: Arc<ResourceInfo>) {
        self.by_version
            .entry(resource.group.clone())
            .or_default()
            .entry(resource.version.clone())
            .or_default()
            .insert(resource.resource.clone(), Arc::clone(&resource));
        match self.groups.iter_mut().find(|group| group.name == resource.group) {
            Some(group) if group.versions.contains(&resource.version) => {}
            Some(group) => group.versions.push(resource.version.clone()),
            None => self.groups.push(Group {
                name: resource.group.clone(),
                versions: vec![resource.version.clone()],
            }),
        }
        let is_storage = resource.version == resource.storage_version
            && *resource.table == qualified(&resource.resource, &resource.group);
        if is_storage || !self.by_table.contains_key(&resource.table) {
            self.by_table.insert(Arc::clone(&resource.table), resource);
        }
    }

    /// One resource in one version.
    pub fn find(&self, group: &str, version: &str, resource: &str) -> Option<&Arc<ResourceInfo>> {
        let own = self.by_version.get(group).and_then(|it| it.get(version)?.get(resource));
        own.or_else(|| self.below.as_ref()?.find(group, version, resource))
    }

    /// Whether the group is served in this version.
    pub fn has_version(&self, group: &str, version: &str) -> bool {
        self.by_version.get(group).is_some_and(|versions| versions.contains_key(version))
            || self.below.as_ref().is_some_and(|below| below.has_version(group, version))
    }

    /// The resource of a table in its storage version (or in any version if that one is not
    /// served).
    pub fn of_table(&self, table: &str) -> Option<&Arc<ResourceInfo>> {
        self.by_table.get(table).or_else(|| self.below.as_ref()?.of_table(table))
    }

    /// The resource with this kind.
    pub fn of_kind(&self, group: &str, version: &str, kind: &str) -> Option<&Arc<ResourceInfo>> {
        let own = self.by_version.get(group).and_then(|it| it.get(version));
        own.and_then(|it| it.values().find(|info| info.kind == kind))
            .or_else(|| self.below.as_ref()?.of_kind(group, version, kind))
    }

    /// Every resource, one entry per version, in discovery order.
    pub fn resources(&self) -> &[Arc<ResourceInfo>] {
        &self.resources
    }

    /// The groups in discovery order, including the core group.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// The resources of one group and version, in discovery order.
    pub fn of_version<'a>(
        &'a self,
        group: &'a str,
        version: &'a str,
    ) -> impl Iterator<Item = &'a Arc<ResourceInfo>> {
        self.resources.iter().filter(move |info| info.group == group && info.version == version)
    }

    /// The text of a group in discovery; `make` builds it on first use.
    pub fn text_of(&self, group: &Group, make: fn(&Self, &Group) -> GroupText) -> GroupText {
        // A group without custom resources is inherited unchanged.
        if let Some(below) = &self.below
            && !self.by_version.contains_key(&group.name)
        {
            return below.text_of(group, make);
        }
        let all = || self.own_groups().map(|it| (it.name.clone(), make(self, it))).collect();
        self.texts.get_or_init(all).get(&group.name).cloned().unwrap_or_else(|| make(self, group))
    }

    /// The groups with resources of this registry itself.
    fn own_groups(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter().filter(|group| self.by_version.contains_key(&group.name))
    }

    /// A number that changes with the set of resources.
    pub fn revision(&self) -> u64 {
        self.revision
    }
}

/// Kubernetes order of versions: `v2 > v1 > v1beta2 > v1beta1 > v1alpha1 > anything else`.
pub fn compare_versions(one: &str, two: &str) -> std::cmp::Ordering {
    match (parse_version(one), parse_version(two)) {
        (Some(one), Some(two)) => one.cmp(&two),
        (Some(_), None) => std::cmp::Ordering::Greater,
        (None, Some(_)) => std::cmp::Ordering::Less,
        (None, None) => two.cmp(one),
    }
}

/// (stability, major, minor); a greater value is a newer version.
fn parse_version(version: &str) -> Option<(u8, u32, u32)> {
    let rest = version.strip_prefix('v')?;
    let digits = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
    let major = rest[..digits].parse().ok()?;
    match &rest[digits..] {
        "" => Some((2, major, 0)),
        stage => {
            let (rank, minor) = stage
                .strip_prefix("beta")
                .map(|minor| (1, minor))
                .or_else(|| stage.strip_prefix("alpha").map(|minor| (0, minor)))?;
            Some((rank, major, minor.parse().ok()?))
        }
    }
}

#[derive(Deserialize)]
struct Recorded {
    group: String,
    version: String,
    resource: String,
    kind: String,
    namespaced: bool,
    singular: String,
    verbs: Vec<String>,
    short: Vec<String>,
    categories: Vec<String>,
    sub: Vec<(String, String, String, String, Vec<String>)>,
}

fn recorded() -> Vec<Arc<ResourceInfo>> {
    let text = include_str!("data/discovery-1.33.json");
    let recorded: Vec<Recorded> =
        serde_json::from_str(text).expect("the committed discovery data is valid");
    recorded.into_iter().map(|entry| Arc::new(entry.into_resource())).collect()
}

/// Mutating admission policies and their bindings, which servers have only if enabled.
pub fn mutating_policies() -> Vec<Arc<ResourceInfo>> {
    let kinds = [
        ("mutatingadmissionpolicies", "MutatingAdmissionPolicy"),
        ("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding"),
    ];
    let versions = ["v1beta1", "v1alpha1"].into_iter();
    let verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
    let of_version = |version: &str| {
        kinds.map(|(resource, kind)| {
            let entry = Recorded {
                group: "admissionregistration.k8s.io".to_owned(),
                version: version.to_owned(),
                resource: resource.to_owned(),
                kind: kind.to_owned(),
                namespaced: false,
                singular: kind.to_lowercase(),
                verbs: verbs.map(str::to_owned).to_vec(),
                short: Vec::new(),
                categories: vec!["api-extensions".to_owned()],
                sub: Vec::new(),
            };
            Arc::new(ResourceInfo {
                storage_version: "v1beta1".to_owned(),
                ..entry.into_resource()
            })
        })
    };
    versions.flat_map(of_version).collect()
}

impl Recorded {
    fn into_resource(self) -> ResourceInfo {
        let table = if self.resource == "events" {
            "events".to_owned()
        } else {
            qualified(&self.resource, &self.group)
        };
        let storage_version = if self.resource == "horizontalpodautoscalers" {
            "v2".to_owned()
        } else {
            self.version.clone()
        };
        ResourceInfo {
            schema: crate::schema::builtin(&self.group, &self.version, &self.kind),
            list_kind: format!("{}List", self.kind),
            group: self.group,
            version: self.version,
            resource: self.resource,
            singular: self.singular,
            kind: self.kind,
            namespaced: self.namespaced,
            verbs: self.verbs,
            short_names: self.short,
            categories: self.categories,
            subresources: self
                .sub
                .into_iter()
                .map(|(name, group, version, kind, verbs)| Subresource {
                    name,
                    group,
                    version,
                    kind,
                    verbs,
                })
                .collect(),
            table: table.into(),
            storage_version,
            custom: None,
        }
    }
}

#[cfg(test)]
mod tests;
