//! An essence as text or as a tree: it holds the form it was created from and makes the other on
//! demand.
//!
//! Most essences are stored and compared as texts, and their fields are never read.

use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::json::raw::{Malformed, member};
use crate::json::text::to_ascii;
use crate::json::{deep, plain};

/// The essence of an object, or a part of it; cheap to clone.
///
/// Behaves like a JSON value, which is parsed on first access.
#[derive(Clone)]
pub struct Essence(Arc<Forms>);

/// At least one of the forms is set.
struct Forms {
    text: OnceLock<String>,
    tree: OnceLock<Value>,
    is_partial: bool,
    /// Whether the text is known to be plain.
    is_plain: bool,
}

impl Essence {
    /// Takes JSON in the form that [`text`](Self::text) returns.
    pub(crate) fn from_text(text: String) -> Self {
        let (text, tree) = (OnceLock::from(text), OnceLock::new());
        Self(Arc::new(Forms { text, tree, is_partial: false, is_plain: false }))
    }

    /// Takes a stored text without reading it; `None` for unusual texts, which need a tree.
    pub(crate) fn from_stored(text: &str) -> Option<Self> {
        let is_usual = text.starts_with('{')
            && plain::is_plain(text.as_bytes())
            && !has_empty_stanza(text).unwrap_or(true);
        let forms = || {
            let (text, tree) = (OnceLock::from(text.to_owned()), OnceLock::new());
            Forms { text, tree, is_partial: false, is_plain: true }
        };
        is_usual.then(|| Self(Arc::new(forms())))
    }

    /// Takes the part of an object that could be read.
    pub(crate) fn from_part(tree: Value) -> Self {
        let (text, tree) = (OnceLock::new(), OnceLock::from(tree));
        Self(Arc::new(Forms { text, tree, is_partial: true, is_plain: false }))
    }

    /// Whether the object could not be read completely because it nests deeper than 256 levels.
    /// Changes in the unread part are not detected.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.0.is_partial
    }

    /// Compact JSON in the form that is stored on objects.
    #[must_use]
    pub fn text(&self) -> &str {
        self.0.text.get_or_init(|| to_ascii(self.0.tree.get().unwrap_or(&Value::Null)))
    }

    /// The tree form.
    #[must_use]
    pub fn value(&self) -> &Value {
        self.0.tree.get_or_init(|| deep::read(self.text().as_bytes()).unwrap_or_default())
    }

    /// Modifies the tree.
    pub fn edit(&mut self, change: impl FnOnce(&mut Value)) {
        let mut tree = self.value().clone();
        change(&mut tree);
        *self = match self.0.is_partial {
            true => Self::from_part(tree),
            false => Self::from(tree),
        };
    }

    /// Whether both are the same essence in memory; different ones can be equal too.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether there are differences to a newer essence; `None` if that takes trees.
    pub(crate) fn differs(&self, new: &Self) -> Option<bool> {
        let old = self.0.text.get().filter(|_| self.0.is_plain)?;
        plain::differ(old.as_bytes(), new.0.text.get()?.as_bytes())
    }

    /// The text, if there is no tree.
    pub(crate) fn only_text(&self) -> Option<&str> {
        self.0.text.get().filter(|_| self.0.tree.get().is_none()).map(String::as_str)
    }

    /// Whether a field with this name may exist anywhere; does not build the tree.
    #[must_use]
    pub fn may_have(&self, field: &str) -> bool {
        self.0.tree.get().is_some() || self.text().contains(field)
    }
}

impl From<Value> for Essence {
    fn from(tree: Value) -> Self {
        let (text, tree) = (OnceLock::new(), OnceLock::from(tree));
        Self(Arc::new(Forms { text, tree, is_partial: false, is_plain: false }))
    }
}

impl std::ops::Deref for Essence {
    type Target = Value;

    fn deref(&self) -> &Value {
        self.value()
    }
}

impl PartialEq for Essence {
    fn eq(&self, other: &Self) -> bool {
        let texts = self.0.text.get().zip(other.0.text.get());
        self.is(other)
            || texts.is_some_and(|(one, other)| one == other)
            || self.value() == other.value()
    }
}

impl PartialEq<Value> for Essence {
    fn eq(&self, other: &Value) -> bool {
        self.value() == other
    }
}

impl std::fmt::Debug for Essence {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.text())
    }
}

/// Whether a text has a stanza that [`drop_empty_stanzas`](super::drop_empty_stanzas) would drop.
fn has_empty_stanza(text: &str) -> Result<bool, Malformed> {
    let is_empty = |raw: Option<&[u8]>| matches!(raw, Some(b"{}" | b"null"));
    let text = text.as_bytes();
    let metadata = member(text, "metadata")?;
    let within = metadata.unwrap_or_default();
    Ok(is_empty(metadata)
        || is_empty(member(text, "status")?)
        || is_empty(member(within, "labels")?)
        || is_empty(member(within, "annotations")?))
}
