//! The identity of an object: places in its bytes, so that it takes no additional memory.
//!
//! Read in one pass that skips everything else.

use std::hash::{Hash as _, Hasher as _};
use std::ops::Range;
use std::sync::LazyLock;

use foldhash::quality::FoldHasher;
use serde::de::Error as _;

use crate::hash_seed::Seed;
use crate::json::raw::{Cursor, Malformed, Text};

/// The strings of an identity.
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

static SEED: LazyLock<Seed> = LazyLock::new(Seed::default);

/// The data of an object that is known without its tree.
#[derive(Clone, Default)]
pub(super) struct Identity {
    texts: Texts,
    pub(super) generation: Option<i64>,
    pub(super) finalizers: Box<[String]>,
    annotations: Place,
    status: Place,
    /// The fingerprint of everything except the system's stanzas and the metadata, but with the
    /// labels; zero if unknown.
    pub(super) essence: u64,
}

#[derive(Clone)]
enum Texts {
    /// The usual case: all strings are in the bytes without escapes.
    Placed([Place; FIELDS]),
    /// Some string has escapes, which no real identity has.
    Owned(Box<[String; FIELDS]>),
}

/// The place of a string in the bytes; absent strings are empty.
#[derive(Clone, Copy, Default)]
struct Place {
    start: u32,
    length: u32,
}

/// The data that one pass over the bytes finds.
struct Head<'a> {
    texts: [Option<Text<'a>>; FIELDS],
    generation: Option<Range<usize>>,
    finalizers: Option<Range<usize>>,
    labels: Option<Range<usize>>,
    annotations: Option<Range<usize>>,
    managed_fields: Option<Range<usize>>,
    status: Option<Range<usize>>,
    essence: FoldHasher<'static>,
}

impl<'a> Head<'a> {
    fn read(raw: &'a [u8]) -> Result<Self, Malformed> {
        let mut head = Self {
            texts: [None; FIELDS],
            generation: None,
            finalizers: None,
            labels: None,
            annotations: None,
            managed_fields: None,
            status: None,
            essence: SEED.build_hasher(),
        };
        let mut cursor = Cursor::new(raw);
        cursor.members(|cursor, key| head.take(cursor, &key.bytes()?))?;
        cursor.end()?;
        Ok(head)
    }

    fn take(&mut self, cursor: &mut Cursor<'a>, key: &[u8]) -> Result<(), Malformed> {
        match key {
            b"apiVersion" => self.take_text(cursor, Field::ApiVersion),
            b"kind" => self.take_text(cursor, Field::Kind),
            b"metadata" => {
                if cursor.null()? {
                    return Ok(());
                }
                cursor.members(|cursor, key| self.take_metadata(cursor, &key.bytes()?))
            }
            b"status" => {
                self.status = Some(cursor.value()?);
                Ok(())
            }
            other => {
                let value = cursor.value()?;
                (other, cursor.at(&value)).hash(&mut self.essence);
                Ok(())
            }
        }
    }

    fn take_metadata(&mut self, cursor: &mut Cursor<'a>, key: &[u8]) -> Result<(), Malformed> {
        let part = match key {
            b"name" => return self.take_text(cursor, Field::Name),
            b"namespace" => return self.take_text(cursor, Field::Namespace),
            b"uid" => return self.take_text(cursor, Field::Uid),
            b"resourceVersion" => return self.take_text(cursor, Field::ResourceVersion),
            b"creationTimestamp" => return self.take_text(cursor, Field::CreationTimestamp),
            b"deletionTimestamp" => return self.take_text(cursor, Field::DeletionTimestamp),
            b"generation" => &mut self.generation,
            b"finalizers" => &mut self.finalizers,
            b"labels" => &mut self.labels,
            b"annotations" => &mut self.annotations,
            b"managedFields" => &mut self.managed_fields,
            _ => return cursor.value().map(drop),
        };
        if !cursor.null()? {
            *part = Some(cursor.value()?);
        }
        Ok(())
    }

    fn take_text(&mut self, cursor: &mut Cursor<'a>, field: Field) -> Result<(), Malformed> {
        if !cursor.null()? {
            self.texts[field as usize] = Some(cursor.text()?);
        }
        Ok(())
    }
}

impl Default for Texts {
    fn default() -> Self {
        Self::Placed([Place::default(); FIELDS])
    }
}

impl Identity {
    /// Reads the identity and the place of the managed fields.
    pub(super) fn read(raw: &[u8]) -> Result<(Self, Option<Range<usize>>), serde_json::Error> {
        let mut head = Head::read(raw).map_err(serde_json::Error::custom)?;
        head.labels.map(|place| &raw[place]).hash(&mut head.essence);
        let generation = head.generation.map(|place| serde_json::from_slice(&raw[place]));
        let finalizers = head.finalizers.map(|place| serde_json::from_slice(&raw[place]));
        let identity = Self {
            texts: Texts::of(&head.texts).map_err(serde_json::Error::custom)?,
            generation: generation.transpose()?,
            finalizers: finalizers.transpose()?.unwrap_or_default(),
            annotations: head.annotations.and_then(Place::of).unwrap_or_default(),
            status: head.status.and_then(Place::of).unwrap_or_default(),
            essence: head.essence.finish().max(1),
        };
        Ok((identity, head.managed_fields))
    }

    /// The annotations as JSON, empty if absent.
    pub(super) fn annotations<'a>(&self, raw: &'a [u8]) -> &'a [u8] {
        self.annotations.of_bytes(raw)
    }

    /// The status as JSON, empty if absent.
    pub(super) fn status<'a>(&self, raw: &'a [u8]) -> &'a [u8] {
        self.status.of_bytes(raw)
    }

    /// The text of a field, empty if absent.
    pub(super) fn text<'a>(&'a self, field: Field, raw: &'a [u8]) -> &'a str {
        match &self.texts {
            Texts::Owned(texts) => &texts[field as usize],
            Texts::Placed(places) => {
                let bytes = places[field as usize].of_bytes(raw);
                std::str::from_utf8(bytes).expect("texts were read when they were found")
            }
        }
    }

    /// Whether the text of a field is this one, without checking its encoding.
    pub(super) fn is_text(&self, field: Field, raw: &[u8], expected: &str) -> bool {
        match &self.texts {
            Texts::Owned(texts) => texts[field as usize] == expected,
            Texts::Placed(places) => places[field as usize].of_bytes(raw) == expected.as_bytes(),
        }
    }

    /// Adjusts the places after a range was removed from the bytes.
    pub(super) fn cut(&mut self, removed: &Range<usize>) {
        let texts = match &mut self.texts {
            Texts::Placed(places) => &mut places[..],
            Texts::Owned(_) => &mut [],
        };
        for place in texts.iter_mut().chain([&mut self.annotations, &mut self.status]) {
            if place.start as usize >= removed.end {
                place.start -= u32::try_from(removed.len()).expect("smaller than the bytes");
            }
        }
    }
}

impl Texts {
    fn of(texts: &[Option<Text<'_>>; FIELDS]) -> Result<Self, Malformed> {
        let mut places = [Place::default(); FIELDS];
        for (place, text) in places.iter_mut().zip(texts) {
            let Some(text) = text else { continue };
            match text.plain().and_then(Place::of) {
                Some(found) => *place = found,
                None => return Self::copied(texts),
            }
            text.read()?;
        }
        Ok(Self::Placed(places))
    }

    fn copied(texts: &[Option<Text<'_>>; FIELDS]) -> Result<Self, Malformed> {
        let mut copies: [String; FIELDS] = Default::default();
        for (copy, text) in copies.iter_mut().zip(texts) {
            if let Some(text) = text {
                *copy = text.read()?.into_owned();
            }
        }
        Ok(Self::Owned(Box::new(copies)))
    }
}

impl Place {
    fn of(range: Range<usize>) -> Option<Self> {
        let (start, length) = (u32::try_from(range.start).ok()?, u32::try_from(range.len()).ok()?);
        Some(Self { start, length })
    }

    fn of_bytes(self, raw: &[u8]) -> &[u8] {
        let start = self.start as usize;
        &raw[start..start + self.length as usize]
    }
}

/// The whole member of a map whose value is at this range: with its key and one comma.
///
/// `None` if the key is written in an unusual way.
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
