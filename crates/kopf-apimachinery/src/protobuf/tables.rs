//! Field numbers and JSON names of all messages, from the committed pack.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::Value;

use crate::pack::Pack;

static TABLES: LazyLock<HashMap<String, Vec<Field>>> = LazyLock::new(load);

/// One field of a message.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) number: u32,
    /// The name in JSON.
    pub(super) name: String,
    pub(super) kind: Kind,
    /// Whether absence and zero are distinct.
    pub(super) pointer: bool,
    /// Whether JSON omits it when it is empty.
    pub(super) omit_empty: bool,
    /// Whether JSON has the fields of the message inline.
    pub(super) inline: bool,
    /// The Go type if OpenAPI does not have its name: `v1.ServiceType`.
    go_type: Option<String>,
}

/// The type of a field.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Text,
    Boolean,
    Integer,
    Double,
    Bytes,
    /// A message that wraps a list of strings.
    TextList,
    Message(String),
    List(Box<Kind>),
    Map(Box<Kind>),
}

impl Kind {
    fn parse(text: &str) -> Self {
        match text.split_at_checked(1) {
            Some(("s", "")) => Self::Text,
            Some(("b", "")) => Self::Boolean,
            Some(("i", "")) => Self::Integer,
            Some(("d", "")) => Self::Double,
            Some(("y", "")) => Self::Bytes,
            Some(("w", "")) => Self::TextList,
            Some(("m", name)) => Self::Message(name.to_owned()),
            Some(("[", kind)) => Self::List(Box::new(Self::parse(kind))),
            Some(("{", kind)) => Self::Map(Box::new(Self::parse(kind))),
            _ => panic!("the pack holds an unknown type {text:?}"),
        }
    }

    /// The value of a map entry without a value on the wire.
    pub(super) fn zero(&self) -> Value {
        match self {
            Self::Text | Self::Bytes => Value::from(""),
            Self::Boolean => Value::from(false),
            Self::Integer | Self::Double => Value::from(0),
            Self::TextList | Self::List(_) => Value::Array(Vec::new()),
            Self::Message(_) | Self::Map(_) => Value::Object(serde_json::Map::new()),
        }
    }
}

fn load() -> HashMap<String, Vec<Field>> {
    let pack = Pack::open(include_bytes!("../../assets/protobuf.pack"));
    let text = pack.chunk("fields").expect("the pack has the field tables");
    let tables: HashMap<String, Vec<String>> =
        serde_json::from_str(&text).expect("the tables are lists of lines");
    let parse = |lines: Vec<String>| lines.iter().map(|line| field(line)).collect();
    tables.into_iter().map(|(name, lines)| (name, parse(lines))).collect()
}

/// Parses `number json-name type flags go-type`.
fn field(line: &str) -> Field {
    let mut parts = line.split(' ');
    let mut part = || parts.next().unwrap_or_default();
    let number = part().parse().expect("a line starts with a number");
    let (name, kind, flags) = (part().to_owned(), part(), part());
    let go_type = Some(part()).filter(|name| !name.is_empty()).map(str::to_owned);
    Field {
        number,
        name,
        kind: Kind::parse(kind),
        pointer: flags.contains('p'),
        omit_empty: flags.contains('o'),
        inline: flags.contains('i'),
        go_type,
    }
}

/// The name of a field's Go type if OpenAPI does not have it.
pub(super) fn go_type(message: &str, field: &str) -> Option<&'static str> {
    fields(message).iter().find(|candidate| candidate.name == field)?.go_type.as_deref()
}

/// The name of a message, if it exists.
pub(super) fn find(name: &str) -> Option<&'static str> {
    TABLES.get_key_value(name).map(|(name, _)| name.as_str())
}

/// The fields of a message; empty for messages without fields.
pub(super) fn fields(name: &str) -> &'static [Field] {
    TABLES.get(name).map_or(&[], Vec::as_slice)
}
