//! Parses resource selectors in all of Kopf's forms, and chooses among discovered resources.

use std::sync::Arc;

use crate::callback::CallbackError;
use crate::resource::{Resource, Selector, SelectorName};

/// Why a selector is invalid.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectorError {
    /// Nothing was given.
    #[error("a resource selector needs at least the name of a resource")]
    Nameless,
    /// More than one of kind, plural, singular, short name and category.
    #[error("a resource selector takes only one of the names, not {0}")]
    SeveralNames(String),
    /// More than group, version and name.
    #[error("a resource selector takes at most 3 positional arguments, not {0}")]
    TooMany(usize),
    /// An empty name.
    #[error("the names in a resource selector must not be empty")]
    EmptyName,
}

/// The criteria of a selector by name, as given with keywords.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Criteria {
    /// The API group.
    pub group: Option<String>,
    /// The version.
    pub version: Option<String>,
    /// The kind.
    pub kind: Option<String>,
    /// The plural name.
    pub plural: Option<String>,
    /// The singular name.
    pub singular: Option<String>,
    /// A short name.
    pub shortcut: Option<String>,
    /// A category.
    pub category: Option<String>,
    /// Any of the names.
    pub any_name: Option<String>,
}

/// The resources that a selector finds in a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selected {
    /// These resources; empty if the resource does not exist (yet).
    Resources(Vec<Arc<Resource>>),
    /// Several resources instead of one: the selector must be more specific.
    Ambiguous(Vec<Arc<Resource>>),
}

impl Selector {
    /// Parses the positional form: `name`, `group, name` or `group, version, name`, where a name
    /// may be `plural.group` or `plural.version.group`, a group may be `group/version` or `v1`, and
    /// the name `*` means everything.
    ///
    /// ```
    /// use kopf_model::Selector;
    /// let selector = Selector::parse(&["kopf.dev", "v1", "kopfexamples"])?;
    /// assert_eq!(selector.version.as_deref(), Some("v1"));
    /// # Ok::<(), kopf_model::selector::SelectorError>(())
    /// ```
    ///
    /// # Errors
    /// Fails if there are no or too many arguments, or an empty name.
    pub fn parse(arguments: &[&str]) -> Result<Self, SelectorError> {
        let selector = match arguments {
            [] => return Err(SelectorError::Nameless),
            ["*"] => Self::everything(),
            [name] => Self::parse_dotted(name),
            [group, name] => Self::parse_group(group).named(name),
            [group, version, name] => {
                let (group, version) = (Some((*group).to_owned()), Some((*version).to_owned()));
                Self { group, version, name: SelectorName::Everything }.named(name)
            }
            more => return Err(SelectorError::TooMany(more.len())),
        };
        match &selector.name {
            SelectorName::Any(name) if name.is_empty() => Err(SelectorError::EmptyName),
            _ => Ok(selector),
        }
    }

    /// Takes the keyword form: exactly one of the names, and optionally group and version.
    ///
    /// # Errors
    /// Fails if no name or several are given, or one is empty.
    pub fn from_criteria(criteria: Criteria) -> Result<Self, SelectorError> {
        type Maker = fn(String) -> SelectorName;
        let names: [(&str, Maker, Option<String>); 6] = [
            ("kind", SelectorName::Kind, criteria.kind),
            ("plural", SelectorName::Plural, criteria.plural),
            ("singular", SelectorName::Singular, criteria.singular),
            ("shortcut", SelectorName::Shortcut, criteria.shortcut),
            ("category", SelectorName::Category, criteria.category),
            ("any_name", SelectorName::Any, criteria.any_name),
        ];
        let mut given: Vec<_> =
            names.into_iter().filter_map(|(word, make, name)| Some((word, make, name?))).collect();
        if given.len() > 1 {
            let words: Vec<_> = given.iter().map(|(word, ..)| *word).collect();
            return Err(SelectorError::SeveralNames(words.join(", ")));
        }
        let (_, make, name) = given.pop().ok_or(SelectorError::Nameless)?;
        if name.is_empty() {
            return Err(SelectorError::EmptyName);
        }
        Ok(Self { group: criteria.group, version: criteria.version, name: make(name) })
    }

    /// Selects everything except Kubernetes events.
    #[must_use]
    pub fn everything() -> Self {
        Self::default()
    }

    /// Selects exactly one resource by its URL parts.
    #[must_use]
    pub fn exact(group: &str, version: &str, plural: &str) -> Self {
        Self {
            group: Some(group.to_owned()),
            version: Some(version.to_owned()),
            name: SelectorName::Plural(plural.to_owned()),
        }
    }

    /// Whether the selector means one resource rather than several.
    #[must_use]
    pub fn is_specific(&self) -> bool {
        !matches!(
            self.name,
            SelectorName::Category(_) | SelectorName::Everything | SelectorName::Matching(_)
        )
    }

    /// Whether it is a function of a user.
    #[must_use]
    pub fn is_function(&self) -> bool {
        matches!(self.name, SelectorName::Matching(_))
    }

    /// Whether a resource meets all criteria; not, if the function fails.
    #[must_use]
    pub fn matches(&self, resource: &Resource) -> bool {
        self.try_matches(resource).unwrap_or(false)
    }

    /// The resources for which the function fails, with its errors.
    pub fn failures<'a>(
        &self,
        resources: impl IntoIterator<Item = &'a Arc<Resource>>,
    ) -> Vec<(&'a Arc<Resource>, CallbackError)> {
        if !self.is_function() {
            return Vec::new();
        }
        let failure =
            |resource: &'a Arc<Resource>| Some((resource, self.try_matches(resource).err()?));
        resources.into_iter().filter_map(failure).collect()
    }

    /// Whether a resource meets all criteria.
    ///
    /// # Errors
    /// Fails when the function does.
    pub fn try_matches(&self, resource: &Resource) -> Result<bool, CallbackError> {
        let is_group = self.group.as_ref().is_none_or(|group| *group == resource.group);
        let is_version = match &self.version {
            Some(version) => *version == resource.version,
            None => resource.preferred || self.is_function(),
        };
        Ok(is_group && is_version && self.name.matches(resource)?)
    }

    /// Chooses among the resources of a cluster; resources of the core group take precedence.
    #[must_use]
    pub fn select<'a>(&self, resources: impl IntoIterator<Item = &'a Arc<Resource>>) -> Selected {
        let mut found: Vec<_> =
            resources.into_iter().filter(|resource| self.matches(resource)).cloned().collect();
        if !self.is_specific() {
            return Selected::Resources(found);
        }
        if found.iter().any(|resource| resource.group.is_empty()) {
            found.retain(|resource| resource.group.is_empty());
        }
        if found.len() > 1 { Selected::Ambiguous(found) } else { Selected::Resources(found) }
    }

    fn named(mut self, name: &str) -> Self {
        self.name = match name {
            "*" => SelectorName::Everything,
            name => SelectorName::Any(name.to_owned()),
        };
        self
    }

    fn parse_group(group: &str) -> Self {
        let (group, version) = match group.rsplit_once('/') {
            Some((group, version)) => (group, Some(version)),
            None if is_version(group) => ("", Some(group)),
            None => (group, None),
        };
        let version = version.map(str::to_owned);
        Self { group: Some(group.to_owned()), version, name: SelectorName::Everything }
    }

    fn parse_dotted(dotted: &str) -> Self {
        let (name, rest) = match dotted.split_once('.') {
            Some((name, rest)) => (name, Some(rest)),
            None => (dotted, None),
        };
        let (version, group) = match rest {
            None => (None, None),
            Some(rest) => {
                let (first, group) = match rest.split_once('.') {
                    Some((first, group)) => (first, Some(group)),
                    None => (rest, None),
                };
                if is_version(first) { (Some(first), group) } else { (None, Some(rest)) }
            }
        };
        let (group, version) = (group.map(str::to_owned), version.map(str::to_owned));
        Self { group, version, name: SelectorName::Everything }.named(name)
    }
}

impl SelectorName {
    fn matches(&self, resource: &Resource) -> Result<bool, CallbackError> {
        Ok(match self {
            Self::Any(name) => {
                [&resource.kind, &resource.plural, &resource.singular].contains(&name)
                    || resource.shortcuts.contains(name)
            }
            Self::Kind(kind) => *kind == resource.kind,
            Self::Plural(plural) => *plural == resource.plural,
            Self::Singular(singular) => *singular == resource.singular,
            Self::Shortcut(shortcut) => resource.shortcuts.contains(shortcut),
            Self::Category(category) => resource.categories.contains(category),
            Self::Everything => !is_kubernetes_events(resource),
            Self::Matching(accepts) => !is_kubernetes_events(resource) && accepts(resource)?,
        })
    }
}

/// Watching these by accident would cause an endless loop of events about events.
fn is_kubernetes_events(resource: &Resource) -> bool {
    resource.plural == "events" && matches!(&*resource.group, "" | "events.k8s.io")
}

/// `v1`, `v2beta1`, `v1alpha3` and the like.
fn is_version(text: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let Some(rest) = text.strip_prefix('v') else { return false };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (number, stage) = rest.split_at(digits);
    let stage = stage.strip_prefix("alpha").or_else(|| stage.strip_prefix("beta")).or_else(|| {
        // A version without a stage is stable.
        stage.is_empty().then_some("0")
    });
    is_number(number) && stage.is_some_and(is_number)
}

impl std::fmt::Debug for Selector {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{self}")
    }
}

/// Formatted as in warnings about selectors: `kopf.dev/v1/kopfexamples`, with `*` for missing
/// parts.
impl std::fmt::Display for Selector {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.group {
            None => formatter.write_str("*/")?,
            Some(group) if group.is_empty() => {}
            Some(group) => write!(formatter, "{group}/")?,
        }
        write!(formatter, "{}/", self.version.as_deref().unwrap_or("*"))?;
        match &self.name {
            SelectorName::Any(name) => formatter.write_str(name),
            SelectorName::Kind(name) => write!(formatter, "kind={name}"),
            SelectorName::Plural(name) => write!(formatter, "plural={name}"),
            SelectorName::Singular(name) => write!(formatter, "singular={name}"),
            SelectorName::Shortcut(name) => write!(formatter, "shortcut={name}"),
            SelectorName::Category(name) => write!(formatter, "category={name}"),
            SelectorName::Everything => formatter.write_str("*"),
            SelectorName::Matching(_) => formatter.write_str("(matching)"),
        }
    }
}

#[cfg(test)]
mod tests;
