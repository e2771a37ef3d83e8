//! Finds fields that a server has accepted but not stored, such as status fields unknown to the
//! schema.

use kopf_model::condition::CONDITIONS;
use kopf_model::{Diff, DiffItem, DiffScope, FieldPath};
use serde_json::{Map, Value};

use super::{Document, Writer, document_of};

impl Writer<'_> {
    /// The fields that a merge patch requested and the response does not have.
    #[must_use]
    pub fn unstored(&self) -> Vec<String> {
        let (true, Some(answered)) = (self.is_merge, &self.newest) else { return Vec::new() };
        // Their list may have been merged into a newer one since.
        let has_all = |conditions: &FieldPath| {
            let merge = self.patch.merge_for(answered.stanza("status").as_deref());
            let asked = merge.get("status").and_then(|status| status.get(CONDITIONS));
            asked.is_none_or(|asked| answered.get(conditions) == Some(asked))
        };
        let merge = self.merged.as_ref().unwrap_or(&self.patch.merge);
        let is_asked = |key: &str| match document_of(key, self.has_status) {
            Document::Main => self.asked.main,
            Document::Status => self.asked.status,
        };
        // Our own records are annotations, which are never dropped: no need to read the response.
        let entries = merge.iter().filter(|(key, _)| *key != "metadata" && is_asked(key));
        let mut odd: Vec<String> = Vec::new();
        for (key, asked) in entries {
            // The usual case, in which nothing needs to be parsed.
            if answered.has_plainly(key, asked) {
                continue;
            }
            let conditions = FieldPath::from_keys(["status", CONDITIONS]);
            let stored = answered.stanza(key);
            let diff = Diff::scoped(Some(asked), stored.as_deref(), DiffScope::Left);
            let path = |item: &DiffItem| {
                let keys = std::iter::once(key.as_str()).chain(item.field.keys());
                FieldPath::from_keys(keys)
            };
            let paths = diff.iter().filter(|item| !is_harmless(item)).map(path);
            let missed = paths.filter(|path| *path != conditions || !has_all(&conditions));
            odd.extend(missed.map(|path| path.to_string()));
        }
        odd
    }
}

/// An empty map that the server does not store is no loss.
fn is_harmless(item: &DiffItem) -> bool {
    item.new.is_none()
        && item.old.as_ref().is_some_and(|old| old.as_object().is_some_and(is_hollow))
}

/// Whether a part of a patch requests only removals.
fn is_hollow(part: &Map<String, Value>) -> bool {
    part.values().all(|value| match value {
        Value::Null => true,
        Value::Object(nested) => is_hollow(nested),
        _ => false,
    })
}
