//! The Leases of replicas as a table: members, ranges, objects.
//!
//! Pure: renders Leases as text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jiff::Timestamp;
use kopf_model::Object;
use kopf_model::lease::LeaseRecord;
use kopf_model::shards::{GROUP_LABEL, TABLE_ANNOTATION, Table};
use serde_json::{Value, json};

/// Replicas that share objects.
pub(super) struct Group {
    pub(super) name: String,
    namespace: String,
    table: Option<Table>,
    /// The Leases of the members, by identity.
    members: BTreeMap<String, LeaseRecord>,
    /// The number of objects of each member, if counted; objects without an owner are under "".
    objects: Option<BTreeMap<String, usize>>,
}

/// The groups of these Leases.
pub(super) fn groups(leases: &[Value]) -> Vec<Group> {
    let mut groups: BTreeMap<(String, String), Group> = BTreeMap::new();
    for lease in leases {
        let meta = &lease["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (name, namespace) = (text(&meta["labels"][GROUP_LABEL]), text(&meta["namespace"]));
        let group = groups.entry((namespace.clone(), name.clone())).or_insert_with(|| Group {
            name: name.clone(),
            namespace,
            table: None,
            members: BTreeMap::new(),
            objects: None,
        });
        if let Some(table) = meta["annotations"][TABLE_ANNOTATION].as_str() {
            group.table = Table::parse(table);
        } else if let Some(identity) = text(&meta["name"]).strip_prefix(&format!("{name}-")) {
            let record = LeaseRecord::read(lease);
            // A released Lease belongs to a replica that has left.
            if !record.holder.is_empty() {
                group.members.insert(identity.to_owned(), record);
            }
        }
    }
    groups.into_values().collect()
}

impl Group {
    /// The ranges of a member; "" means ranges without an owner.
    fn ranges(&self, identity: &str) -> Vec<u32> {
        let owners = self.table.iter().flat_map(|table| &table.owners);
        let owned = (0..).zip(owners).filter(|(_, owner)| {
            owner.as_ref().map_or("", |owner| owner.identity.as_str()) == identity
        });
        owned.map(|(range, _)| range).collect()
    }

    /// All members with a Lease or a range, and "" if there are ranges without an owner.
    fn identities(&self) -> Vec<String> {
        let owners = self.table.iter().flat_map(|table| &table.owners);
        let mut identities: Vec<String> = owners
            .map(|it| it.as_ref().map_or_else(String::new, |it| it.identity.clone()))
            .collect();
        identities.extend(self.members.keys().cloned());
        identities.sort();
        identities.dedup();
        identities
    }

    /// Counts the objects of every member.
    pub(super) fn count(&mut self, objects: &[Value]) {
        let mut counts = BTreeMap::new();
        for object in objects {
            let (_, owner) = self.owner_of(&Object::from_value(object.clone()));
            *counts.entry(owner).or_default() += 1;
        }
        self.objects = Some(counts);
    }

    fn owner_of(&self, object: &Object) -> (u32, String) {
        let Some(table) = &self.table else { return (0, String::new()) };
        let range = table.ranges.of(object.uid(), object.namespace());
        let owner = table.owners.get(range as usize).cloned().flatten();
        (range, owner.map(|it| it.identity).unwrap_or_default())
    }

    /// A line about the owner of an object, or about the reason why nothing happens.
    pub(super) fn owner_line(&self, object: &Object, now: Timestamp) -> String {
        let Some(table) = &self.table else { return String::new() };
        let (range, owner) = self.owner_of(object);
        let (name, all) = (&self.name, table.ranges.count());
        let waits = "nothing happens until another replica takes it";
        let what = match (owner.as_str(), self.members.get(&owner)) {
            ("", _) => "which nobody has: nothing happens until a replica takes it".to_owned(),
            (owner, None) => format!("of replica {owner}, which has left: {waits}"),
            (owner, Some(lease)) => match overdue(lease, now) {
                Some(age) => format!(
                    "of replica {owner}, which has not renewed its Lease for {age} s: {waits}"
                ),
                None => format!("served by replica {owner}"),
            },
        };
        format!("\n  in range {range} of {all} of {name}, {what}\n")
    }

    pub(super) fn document(&self) -> Value {
        let member = |identity: &String| {
            let lease = self.members.get(identity);
            let counts = self.objects.as_ref();
            json!({
                "identity": identity,
                "renewed": lease.and_then(|it| it.renewed).map(|it| it.to_string()),
                "ranges": self.ranges(identity),
                "objects": counts.map(|it| it.get(identity).copied().unwrap_or_default()),
            })
        };
        json!({
            "name": self.name,
            "namespace": self.namespace,
            "field": self.table.as_ref().map(|it| it.ranges.field.path()),
            "ranges": self.table.as_ref().map(|it| it.ranges.count()),
            "revision": self.table.as_ref().map(|it| it.revision),
            "members": self.identities().iter().map(member).collect::<Vec<_>>(),
        })
    }

    pub(super) fn render(&self, now: Timestamp) -> String {
        let (name, namespace) = (&self.name, &self.namespace);
        let mut text = match &self.table {
            Some(Table { revision, ranges, .. }) => format!(
                "{name} in {namespace}: {} ranges of {}, revision {revision}\n",
                ranges.count(),
                ranges.field.path()
            ),
            None => format!("{name} in {namespace}: no table yet\n"),
        };
        let identities = self.identities();
        let title = |it: &String| if it.is_empty() { "(nobody)".to_owned() } else { it.clone() };
        let width = identities.iter().map(|it| title(it).len()).max().unwrap_or(0).max(6);
        let _ = writeln!(text, "{:width$}  {:>9}  {:>7}  RANGES", "MEMBER", "RENEWED", "OBJECTS");
        for identity in &identities {
            let age = match self.members.get(identity) {
                Some(lease) => age(lease, now).map_or_else(String::new, |it| format!("{it} s ago")),
                None if identity.is_empty() => String::new(),
                None => "left".to_owned(),
            };
            let objects = self.objects.as_ref().map_or_else(String::new, |counts| {
                counts.get(identity).copied().unwrap_or_default().to_string()
            });
            let ranges = self.ranges(identity);
            let title = title(identity);
            let _ = writeln!(
                text,
                "{title:width$}  {age:>9}  {objects:>7}  {}: {}",
                ranges.len(),
                spans(&ranges)
            );
        }
        text
    }
}

/// A line about the replica that leads, and does everything.
pub(super) fn leader_line(lease: &Value, now: Timestamp) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (name, namespace) =
        (text(&lease["metadata"]["name"]), text(&lease["metadata"]["namespace"]));
    let record = LeaseRecord::read(lease);
    match (record.holder.as_str(), overdue(&record, now)) {
        ("", _) => format!(
            "\n  nobody holds the Lease {name} in {namespace}: \
             the operator does nothing until a replica takes it\n"
        ),
        (holder, Some(age)) => format!(
            "\n  replica {holder} has not renewed the Lease {name} in {namespace} for {age} s: \
             the operator does nothing until another replica takes it\n"
        ),
        (holder, _) => format!(
            "\n  served by replica {holder}, which leads by the Lease {name} in {namespace}; \
             others stand by\n"
        ),
    }
}

/// The seconds since the last renewal.
fn age(lease: &LeaseRecord, now: Timestamp) -> Option<i64> {
    lease.renewed.map(|at| now.duration_since(at).as_secs().max(0))
}

/// The same, if the Lease has expired.
fn overdue(lease: &LeaseRecord, now: Timestamp) -> Option<i64> {
    let duration = i64::try_from(lease.duration?.as_secs()).unwrap_or(i64::MAX);
    age(lease, now).filter(|age| *age > duration)
}

/// `0-3, 7` for 0, 1, 2, 3 and 7.
fn spans(ranges: &[u32]) -> String {
    let mut spans: Vec<(u32, u32)> = Vec::new();
    for range in ranges {
        match spans.last_mut() {
            Some((_, end)) if *end + 1 == *range => *end = *range,
            _ => spans.push((*range, *range)),
        }
    }
    let text = |(start, end): &(u32, u32)| match start == end {
        true => start.to_string(),
        false => format!("{start}-{end}"),
    };
    spans.iter().map(text).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
