//! The bytes of a snapshot: a line with the format, a line of JSON, the settled objects, a checksum.

use kopf_model::shards::hash;
use serde_json::{Value, json};

use super::{ObjectName, Section, SectionKey, Settled, Snapshot};
use crate::write::Version;

/// The first line; its number changes with the format.
const FORMAT: &str = "kopf-snapshot 1";
/// The beginning of the first line in any format.
const FAMILY: &[u8] = b"kopf-snapshot ";
/// The size of a settled object: uid and version.
const SETTLED_BYTES: usize = 24;
/// The size of the checksum at the end.
const CHECKSUM_BYTES: usize = 8;

/// Why bytes are not a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// The file contains something else.
    #[error("it is not a snapshot")]
    Foreign,
    /// It was written by another version of this program.
    #[error("it has another format")]
    OtherFormat,
    /// A part of it is missing or wrong.
    #[error("it is damaged")]
    Damaged,
}

/// Encodes a snapshot.
#[must_use]
pub fn encode(snapshot: &Snapshot) -> Vec<u8> {
    let sections: Vec<Value> = snapshot.sections.iter().map(describe).collect();
    let settled: usize = snapshot.sections.iter().map(|section| section.settled.len()).sum();
    let header = format!("{FORMAT}\n{}\n", Value::Array(sections));
    let mut bytes = Vec::with_capacity(header.len() + settled * SETTLED_BYTES + CHECKSUM_BYTES);
    bytes.extend_from_slice(header.as_bytes());
    for object in snapshot.sections.iter().flat_map(|section| &section.settled) {
        bytes.extend_from_slice(&object.uid.to_le_bytes());
        bytes.extend_from_slice(&object.version.number().to_le_bytes());
    }
    let checksum = hash(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Decodes a snapshot.
///
/// # Errors
/// Fails unless the bytes are exactly what [`encode`] returned.
pub fn decode(bytes: &[u8]) -> Result<Snapshot, SnapshotError> {
    if !bytes.starts_with(FAMILY) {
        return Err(SnapshotError::Foreign);
    }
    let rest = bytes.strip_prefix(FORMAT.as_bytes()).ok_or(SnapshotError::OtherFormat)?;
    let rest = rest.strip_prefix(b"\n").ok_or(SnapshotError::OtherFormat)?;
    read(bytes, rest).ok_or(SnapshotError::Damaged)
}

fn read(bytes: &[u8], rest: &[u8]) -> Option<Snapshot> {
    let (content, checksum) = bytes.split_last_chunk::<CHECKSUM_BYTES>()?;
    if hash(content) != u64::from_le_bytes(*checksum) {
        return None;
    }
    let rest = rest.get(..rest.len().checked_sub(CHECKSUM_BYTES)?)?;
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let (header, mut rest) = (&rest[..end], &rest[end + 1..]);
    let header: Vec<Value> = serde_json::from_slice(header).ok()?;
    let mut sections = Vec::with_capacity(header.len());
    for described in &header {
        let count = usize::try_from(described["settled"].as_u64()?).ok()?;
        let (settled, others) = rest.split_at_checked(count.checked_mul(SETTLED_BYTES)?)?;
        rest = others;
        sections.push(section(described, settled)?);
    }
    rest.is_empty().then_some(Snapshot { sections })
}

fn describe(section: &Section) -> Value {
    let key = &section.key;
    let unsettled: Vec<Value> =
        section.unsettled.iter().map(|it| json!([it.namespace, it.name])).collect();
    json!({
        "server": key.server,
        "schema": key.schema,
        "resource": key.resource,
        "namespace": key.namespace,
        "selectors": key.selectors,
        "basis": key.basis,
        "version": section.version.number(),
        "settled": section.settled.len(),
        "unsettled": unsettled,
    })
}

fn section(described: &Value, settled: &[u8]) -> Option<Section> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let selector = |index: usize| text(&described["selectors"][index]);
    let name = |pair: &Value| {
        let namespace = match &pair[0] {
            Value::Null => None,
            namespace => Some(text(namespace)?),
        };
        Some(ObjectName { namespace, name: text(&pair[1])? })
    };
    let (settled, []) = settled.as_chunks::<SETTLED_BYTES>() else { return None };
    Some(Section {
        key: SectionKey {
            server: text(&described["server"])?,
            schema: text(&described["schema"])?,
            resource: text(&described["resource"])?,
            namespace: text(&described["namespace"])?,
            selectors: [selector(0)?, selector(1)?, selector(2)?],
            basis: text(&described["basis"])?,
        },
        version: Version::from_number(described["version"].as_u64()?),
        settled: settled.iter().map(object).collect(),
        unsettled: described["unsettled"].as_array()?.iter().map(name).collect::<Option<_>>()?,
    })
}

fn object(bytes: &[u8; SETTLED_BYTES]) -> Settled {
    let (mut uid, mut version) = ([0; 16], [0; 8]);
    uid.copy_from_slice(&bytes[..16]);
    version.copy_from_slice(&bytes[16..]);
    let version = Version::from_number(u64::from_le_bytes(version));
    Settled { uid: u128::from_le_bytes(uid), version }
}
