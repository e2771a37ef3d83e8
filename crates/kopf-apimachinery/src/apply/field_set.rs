//! A set of field paths, kept as a trie.
//!
//! Responsible for set algebra and the `FieldsV1` encoding. `typed` decides which paths an object
//! has; `managers` knows who owns them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde_json::Value;

use super::json_text::{RawField, fields, unescaped};
use super::path::{PathElement, PathElementError};

/// A set of paths. A path can be a member and still have members below it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct FieldSet {
    nodes: BTreeMap<PathElement, Node>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Node {
    is_member: bool,
    below: FieldSet,
}

impl Node {
    fn is_empty(&self) -> bool {
        !self.is_member && self.below.is_empty()
    }
}

impl FieldSet {
    /// A set of paths that consist of fields only, such as `["metadata", "name"]`.
    pub(crate) fn of_fields(paths: &[&[&str]]) -> Self {
        let mut set = Self::default();
        for path in paths {
            set.insert_fields(path);
        }
        set
    }

    fn insert_fields(&mut self, path: &[&str]) {
        match path {
            [] => {}
            [last] => self.insert(PathElement::field(last)),
            [first, rest @ ..] => self.child(PathElement::field(first)).insert_fields(rest),
        }
    }

    /// Whether there is no path.
    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.values().all(Node::is_empty)
    }

    /// Adds the path that consists of this one step.
    pub(crate) fn insert(&mut self, element: PathElement) {
        self.nodes.entry(element).or_default().is_member = true;
    }

    /// Returns the set below a step; creates it if absent.
    pub(crate) fn child(&mut self, element: PathElement) -> &mut Self {
        &mut self.nodes.entry(element).or_default().below
    }

    /// Whether nothing has been added.
    pub(crate) fn is_untouched(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Adds everything in `below` under `element`.
    pub(crate) fn graft(&mut self, element: PathElement, below: Self) {
        if !below.is_untouched() {
            self.put(element, false, below);
        }
    }

    /// Adds a step, if it is a member, and everything in `below` under it.
    pub(crate) fn put(&mut self, element: PathElement, is_member: bool, below: Self) {
        match self.nodes.entry(element) {
            Entry::Vacant(place) => {
                place.insert(Node { is_member, below });
            }
            Entry::Occupied(mut place) => {
                let node = place.get_mut();
                node.is_member |= is_member;
                node.below.absorb(below);
            }
        }
    }

    /// Whether the path that consists of this one step is a member.
    pub(crate) fn contains(&self, element: &PathElement) -> bool {
        self.nodes.get(element).is_some_and(|node| node.is_member)
    }

    /// Whether a field is a member, and what is below it, for small sets.
    pub(crate) fn at_field(&self, name: &str) -> (bool, Option<&Self>) {
        let is_it = |element: &PathElement| matches!(element, PathElement::Field(field) if **field == *name);
        match self.nodes.iter().find(|(element, _)| is_it(element)) {
            Some((_, node)) => {
                (node.is_member, Some(&node.below).filter(|below| !below.is_empty()))
            }
            None => (false, None),
        }
    }

    /// Returns the set below a step, if there is one.
    pub(crate) fn below(&self, element: &PathElement) -> Option<&Self> {
        self.nodes.get(element).map(|node| &node.below).filter(|below| !below.is_empty())
    }

    /// Iterates over the steps from the root, with the sets below them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&PathElement, &Self)> {
        self.nodes.iter().map(|(element, node)| (element, &node.below))
    }

    /// Adds all paths of `other`.
    pub(crate) fn extend(&mut self, other: &Self) {
        for (element, node) in &other.nodes {
            let target = self.nodes.entry(element.clone()).or_default();
            target.is_member |= node.is_member;
            target.below.extend(&node.below);
        }
    }

    /// Adds all paths of `other`, consuming it.
    pub(crate) fn absorb(&mut self, other: Self) {
        if self.is_untouched() {
            *self = other;
            return;
        }
        for (element, node) in other.nodes {
            self.put(element, node.is_member, node.below);
        }
    }

    /// Removes all paths of `other`.
    pub(crate) fn subtract(&mut self, other: &Self) {
        // The set that is subtracted from is usually the smaller one.
        self.nodes.retain(|element, node| {
            let Some(other) = other.nodes.get(element) else { return true };
            node.is_member &= !other.is_member;
            node.below.subtract(&other.below);
            !node.is_empty()
        });
    }

    /// Removes all paths of `other` and everything below them.
    pub(crate) fn subtract_subtrees(&mut self, other: &Self) {
        self.nodes.retain(|element, node| {
            let Some(other) = other.nodes.get(element) else { return true };
            if !other.is_member {
                node.below.subtract_subtrees(&other.below);
            }
            !other.is_member && !node.is_empty()
        });
    }

    /// Whether any path of this set is also in the text of a `fieldsV1`.
    pub(crate) fn intersects(&self, text: &[u8]) -> bool {
        self.may_intersect(text) && self.does_meet(text)
    }

    /// Whether the steps of any path occur anywhere in the text. A search is faster than parsing.
    fn may_intersect(&self, text: &[u8]) -> bool {
        let mut spelled = Vec::new();
        self.nodes.iter().any(|(element, node)| {
            spelled.clear();
            element.write(&mut spelled);
            memchr::memmem::find(text, &spelled).is_some()
                && (node.is_member || node.below.may_intersect(text))
        })
    }

    fn does_meet(&self, text: &[u8]) -> bool {
        if self.nodes.is_empty() {
            return false;
        }
        let others: Vec<RawField<'_>> = fields(text).collect();
        self.nodes.iter().any(|(element, node)| {
            find(&others, element).is_some_and(|inner| {
                (node.is_member && is_written_member(inner)) || node.below.does_meet(inner)
            })
        })
    }

    /// Whether every path of this set is also in the text of a `fieldsV1`.
    pub(crate) fn is_within(&self, text: &[u8]) -> bool {
        if self.nodes.is_empty() {
            return true;
        }
        let others: Vec<RawField<'_>> = fields(text).collect();
        self.nodes.iter().filter(|(_, node)| !node.is_empty()).all(|(element, node)| {
            find(&others, element).is_some_and(|inner| {
                (!node.is_member || is_written_member(inner)) && node.below.is_within(inner)
            })
        })
    }

    /// The paths that are in either set.
    pub(crate) fn union(&self, other: &Self) -> Self {
        let mut result = self.clone();
        result.extend(other);
        result
    }

    /// The paths that are in both sets.
    pub(crate) fn intersection(&self, other: &Self) -> Self {
        self.combine(other, |left, right| left && right, true)
    }

    /// The paths that are not in `other`.
    pub(crate) fn difference(&self, other: &Self) -> Self {
        self.combine(other, |left, right| left && !right, false)
    }

    fn combine(&self, other: &Self, keep: fn(bool, bool) -> bool, both_only: bool) -> Self {
        let mut nodes = BTreeMap::new();
        for (element, node) in &self.nodes {
            let combined = match other.nodes.get(element) {
                Some(other) => Node {
                    is_member: keep(node.is_member, other.is_member),
                    below: node.below.combine(&other.below, keep, both_only),
                },
                None if both_only => continue,
                None => node.clone(),
            };
            if !combined.is_empty() {
                nodes.insert(element.clone(), combined);
            }
        }
        Self { nodes }
    }

    /// The paths that are neither in `other` nor below a path in `other`.
    pub(crate) fn without_subtrees(&self, other: &Self) -> Self {
        let mut nodes = BTreeMap::new();
        for (element, node) in &self.nodes {
            let kept = match other.nodes.get(element) {
                Some(other) if other.is_member => continue,
                Some(other) => Node {
                    is_member: node.is_member,
                    below: node.below.without_subtrees(&other.below),
                },
                None => node.clone(),
            };
            if !kept.is_empty() {
                nodes.insert(element.clone(), kept);
            }
        }
        Self { nodes }
    }

    /// All paths, in order and in the notation of conflict messages.
    pub(crate) fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.collect_paths(&mut String::new(), &mut paths);
        paths
    }

    /// Upstream lists the members of a level before deeper ones.
    fn collect_paths(&self, prefix: &mut String, paths: &mut Vec<String>) {
        let members = self.nodes.iter().filter(|(_, node)| node.is_member);
        paths.extend(members.map(|(element, _)| format!("{prefix}{element}")));
        for (element, node) in &self.nodes {
            let length = prefix.len();
            prefix.push_str(&element.to_string());
            node.below.collect_paths(prefix, paths);
            prefix.truncate(length);
        }
    }

    /// Appends the set as the text of `fieldsV1`.
    pub(crate) fn write(&self, into: &mut Vec<u8>) {
        self.write_below(false, into);
    }

    /// Appends what is below a step that may be a member itself.
    pub(crate) fn write_below(&self, is_member: bool, into: &mut Vec<u8>) {
        into.push(b'{');
        let mut has_content = false;
        for (element, node) in self.nodes.iter().filter(|(_, node)| !node.is_empty()) {
            if !has_content && is_member {
                into.extend_from_slice(MEMBER);
            }
            if has_content || is_member {
                into.push(b',');
            }
            has_content = true;
            element.write(into);
            into.push(b':');
            node.below.write_below(node.is_member, into);
        }
        into.push(b'}');
    }

    /// Parses the text of a `fieldsV1`; a node without content is a member.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let mut set = Self::default();
        for (name, inner) in fields(text).filter(|(name, _)| *name != b".") {
            let below = Self::parse(inner)?;
            let is_member = below.nodes.is_empty() || is_written_member(inner);
            let element = PathElement::parse(&unescaped(name)?).ok()?;
            set.nodes.insert(element, Node { is_member, below });
        }
        Some(set)
    }

    /// Parses `fieldsV1`; a node without content is a member.
    pub(crate) fn decode(fields: &Value) -> Result<Self, PathElementError> {
        let mut set = Self::default();
        let Value::Object(fields) = fields else { return Ok(set) };
        for (key, inner) in fields {
            if key == "." {
                continue;
            }
            let below = Self::decode(inner)?;
            let is_member = below.nodes.is_empty() || inner.get(".").is_some();
            set.nodes.insert(PathElement::parse(key)?, Node { is_member, below });
        }
        Ok(set)
    }
}

/// How a member that has other paths below it is encoded.
pub(crate) const MEMBER: &[u8] = b"\".\":{}";

/// What is below a step.
fn find<'a>(fields: &[RawField<'a>], element: &PathElement) -> Option<&'a [u8]> {
    fields.iter().find(|(name, _)| element.is_spelled(name)).map(|(_, inner)| *inner)
}

/// Whether the step that leads to this part of a `fieldsV1` is a member.
fn is_written_member(inner: &[u8]) -> bool {
    !inner.starts_with(b"{") || inner == b"{}" || fields(inner).any(|(name, _)| name == b".")
}

#[cfg(test)]
mod tests;
