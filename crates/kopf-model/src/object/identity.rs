//! Which object it is: places in its bytes, so that an identity takes no memory of its own.
//!
//! Read in one pass that skips everything else.

use std::borrow::Cow;
use std::ops::Range;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// The texts of an identity.
#[derive(Clone, Copy, Debug)]
pub(super) enum Field {
    ApiVersion,
    Kind,
    Name,
    Namespace,
    Uid,
    ResourceVersion,
    CreationTimestamp,
    DeletionTimestamp,
}

const FIELDS: usize = 8;

/// What is known of an object without its tree.
#[derive(Clone, Default)]
pub(super) struct Identity {
    texts: Texts,
    pub(super) generation: Option<i64>,
    pub(super) finalizers: Vec<String>,
}

#[derive(Clone)]
enum Texts {
    /// The usual case: all texts are in the bytes as they are.
    Placed([Place; FIELDS]),
    /// Some text has escapes, which no real identity has.
    Owned(Box<[String; FIELDS]>),
}

/// A text in the bytes; absent texts are empty.
#[derive(Clone, Copy, Default)]
struct Place {
    start: u32,
    length: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head<'a> {
    #[serde(borrow, default)]
    api_version: Text<'a>,
    #[serde(borrow, default)]
    kind: Text<'a>,
    #[serde(borrow, default)]
    metadata: Option<Metadata<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    namespace: Text<'a>,
    #[serde(borrow)]
    uid: Text<'a>,
    #[serde(borrow)]
    resource_version: Text<'a>,
    generation: Option<i64>,
    #[serde(borrow)]
    creation_timestamp: Text<'a>,
    #[serde(borrow)]
    deletion_timestamp: Text<'a>,
    finalizers: Option<Vec<String>>,
    #[serde(borrow)]
    managed_fields: Option<&'a RawValue>,
}

/// A text that is not copied unless it has escapes; empty for null.
#[derive(Default)]
struct Text<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor).map(Self)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a string")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(""))
    }
}

impl Default for Texts {
    fn default() -> Self {
        Self::Placed([Place::default(); FIELDS])
    }
}

impl Identity {
    /// Reads the identity, and where the managed fields are.
    pub(super) fn read(raw: &[u8]) -> Result<(Self, Option<Range<usize>>), serde_json::Error> {
        // A list would be taken for the fields of the map in their order.
        if !raw.trim_ascii_start().starts_with(b"{") {
            return Err(serde_json::Error::custom("not a map"));
        }
        let head: Head<'_> = serde_json::from_slice(raw)?;
        let metadata = head.metadata.unwrap_or_default();
        let texts = [
            head.api_version,
            head.kind,
            metadata.name,
            metadata.namespace,
            metadata.uid,
            metadata.resource_version,
            metadata.creation_timestamp,
            metadata.deletion_timestamp,
        ];
        let managed = metadata.managed_fields.and_then(|value| range_of(raw, value.get()));
        let identity = Self {
            texts: Texts::of(raw, texts),
            generation: metadata.generation,
            finalizers: metadata.finalizers.unwrap_or_default(),
        };
        Ok((identity, managed))
    }

    /// The text of a field, empty if absent.
    pub(super) fn text<'a>(&'a self, field: Field, raw: &'a [u8]) -> &'a str {
        match &self.texts {
            Texts::Owned(texts) => &texts[field as usize],
            Texts::Placed(places) => {
                let Place { start, length } = places[field as usize];
                let (start, length) = (start as usize, length as usize);
                let bytes = &raw[start..start + length];
                std::str::from_utf8(bytes).expect("texts were found in valid JSON")
            }
        }
    }

    /// Follows the removal of a range from the bytes.
    pub(super) fn cut(&mut self, removed: &Range<usize>) {
        let Texts::Placed(places) = &mut self.texts else { return };
        for place in places {
            if place.start as usize >= removed.end {
                place.start -= u32::try_from(removed.len()).expect("smaller than the bytes");
            }
        }
    }
}

impl Texts {
    fn of(raw: &[u8], texts: [Text<'_>; FIELDS]) -> Self {
        let mut places = [Place::default(); FIELDS];
        for (place, text) in places.iter_mut().zip(&texts) {
            let found = match &text.0 {
                Cow::Borrowed("") => Some(Place::default()),
                Cow::Borrowed(text) => range_of(raw, text).and_then(Place::of),
                Cow::Owned(_) => None,
            };
            match found {
                Some(found) => *place = found,
                None => return Self::Owned(Box::new(texts.map(|text| text.0.into_owned()))),
            }
        }
        Self::Placed(places)
    }
}

impl Place {
    fn of(range: Range<usize>) -> Option<Self> {
        let (start, length) = (u32::try_from(range.start).ok()?, u32::try_from(range.len()).ok()?);
        Some(Self { start, length })
    }
}

/// Where a text that was borrowed from the bytes is in them.
fn range_of(raw: &[u8], text: &str) -> Option<Range<usize>> {
    let start = (text.as_ptr() as usize).checked_sub(raw.as_ptr() as usize)?;
    let range = start..start + text.len();
    (raw.get(range.clone())? == text.as_bytes()).then_some(range)
}

/// The whole member of a map whose value is at this range: with its key, and with one comma.
///
/// None when the key is written in an unusual way.
pub(super) fn member_at(raw: &[u8], value: Range<usize>) -> Option<Range<usize>> {
    const KEY: &[u8] = b"\"managedFields\"";
    let before = raw[..value.start].trim_ascii_end().strip_suffix(b":")?;
    let start = before.trim_ascii_end().strip_suffix(KEY)?.len();
    let rest = raw[value.end..].trim_ascii_start();
    if let Some(after) = rest.strip_prefix(b",") {
        return Some(start..raw.len() - after.len());
    }
    let start = match raw[..start].trim_ascii_end().strip_suffix(b",") {
        Some(others) => others.len(),
        None => start,
    };
    Some(start..value.end)
}
