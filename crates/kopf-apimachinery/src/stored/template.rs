//! Objects that are known before a server starts, except for their uids, versions and times.
//!
//! A template is the encoding of such an object. Filling in the rest copies bytes, so that a server
//! with many initial objects starts quickly; their trees are decoded when somebody reads them.

use std::ops::Range;

use bytes::Bytes;
use parking_lot::Mutex;

use super::{Packed, Tree};
use crate::encoding::MANAGED_PREFIX;

/// The time in templates, which is replaced.
pub const TEMPLATE_TIME: &str = "2000-01-01T00:00:00Z";

/// The encoding of an object with an empty uid and the version 0.
pub struct Template {
    text: &'static str,
    // In the order of the text.
    blanks: Vec<(Range<usize>, Blank)>,
    managed: Range<usize>,
}

/// What is filled in.
#[derive(Clone, Copy)]
enum Blank {
    Uid,
    Version,
    Time,
}

impl Template {
    /// Finds the places of the uid, of the version and of times in an encoding.
    pub fn new(text: &'static str) -> Self {
        let uid = after(text, "\"uid\":\"").map(|at| (at..at, Blank::Uid));
        let version =
            after(text, "\"resourceVersion\":\"").map(|at| (at..at + "0".len(), Blank::Version));
        let times = text.match_indices(TEMPLATE_TIME);
        let times = times.map(|(at, time)| (at..at + time.len(), Blank::Time));
        let mut blanks: Vec<_> = uid.into_iter().chain(version).chain(times).collect();
        blanks.sort_by_key(|(place, _)| place.start);
        let prefix = std::str::from_utf8(MANAGED_PREFIX).expect("it is ASCII");
        let managed =
            after(text, prefix).map_or(0..0, |start| start..start + array(&text[start..]));
        Self { text, blanks, managed }
    }

    /// The object with this identity.
    pub fn fill(&self, uid: &str, resource_version: u64, time: &str) -> Packed {
        let version = resource_version.to_string();
        let content_of = |blank: Blank| match blank {
            Blank::Uid => uid,
            Blank::Version => &version,
            Blank::Time => time,
        };
        let added: usize = self.blanks.iter().map(|(_, blank)| content_of(*blank).len()).sum();
        let removed: usize = self.blanks.iter().map(|(place, _)| place.len()).sum();
        let mut encoded = Vec::with_capacity(self.text.len() - removed + added);
        let (mut copied, mut managed) = (0, self.managed.clone());
        for (place, blank) in &self.blanks {
            let content = content_of(*blank);
            encoded.extend_from_slice(&self.text.as_bytes()[copied..place.start]);
            encoded.extend_from_slice(content.as_bytes());
            copied = place.end;
            for (end, moved) in
                [(self.managed.start, &mut managed.start), (self.managed.end, &mut managed.end)]
            {
                if place.end <= end {
                    *moved = *moved + content.len() - place.len();
                }
            }
        }
        encoded.extend_from_slice(&self.text.as_bytes()[copied..]);
        let offset = |offset: usize| u32::try_from(offset).expect("templates are small");
        Packed {
            encoded: Bytes::from(encoded.into_boxed_slice()),
            managed: offset(managed.start)..offset(managed.end),
            resource_version,
            tree: Mutex::new(Tree::Unread),
        }
    }
}

/// The place after the first occurrence of `prefix`.
fn after(text: &str, prefix: &str) -> Option<usize> {
    text.find(prefix).map(|at| at + prefix.len())
}

/// The length of the array at the start of a text.
fn array(text: &str) -> usize {
    let mut items = serde_json::Deserializer::from_str(text).into_iter::<serde::de::IgnoredAny>();
    let _ = items.next();
    items.byte_offset()
}
