//! Objects as values of Go types: zero values, nil, pointers and the names of types.
//!
//! Pure. Made from JSON for `diff`, which compares and prints them.

use serde_json::Value;

use super::{Amount, STRUCTS, inner, quantity, sorted, text};
use crate::go_print::quoted;
use crate::quantity::Quantity;

/// A value of a Go type.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Go {
    Nil,
    /// A number or a boolean, as printed.
    Plain(String),
    Text(String),
    Struct(Struct),
    Pointer(Box<Go>),
    List {
        go_type: String,
        items: Vec<Go>,
    },
    /// The keys are as printed.
    Map {
        go_type: String,
        entries: Vec<(String, Go)>,
    },
}

#[derive(Clone, Debug)]
pub(super) struct Struct {
    pub(super) go_type: String,
    pub(super) fields: Vec<(&'static str, Go)>,
    /// The amount and the text of a quantity. Quantities are compared as a whole, by amount.
    pub(super) amount: Option<(i128, String)>,
}

impl PartialEq for Struct {
    fn eq(&self, other: &Self) -> bool {
        match (&self.amount, &other.amount) {
            (Some((left, _)), Some((right, _))) => left == right,
            _ => self.fields == other.fields,
        }
    }
}

impl Go {
    pub(super) fn is_zero(&self) -> bool {
        match self {
            Self::Nil => true,
            Self::Plain(shown) => shown == "0" || shown == "false",
            Self::Text(text) => text.is_empty(),
            Self::Struct(it) => it.fields.iter().all(|(_, field)| field.is_zero()),
            Self::Pointer(_) | Self::List { .. } | Self::Map { .. } => false,
        }
    }

    /// What the `String` method of a pointer to this value returns, if there is one.
    pub(super) fn text_of_pointer(&self) -> Option<String> {
        let Self::Struct(it) = self else { return None };
        match &it.amount {
            Some((_, text)) => Some(text.clone()),
            None => (it.go_type == "v1.LabelSelector").then(|| format!("&{}", it.generated_text())),
        }
    }
}

impl Struct {
    pub(super) fn new(go_type: &str, fields: Vec<(&'static str, Go)>) -> Self {
        Self { go_type: go_type.to_owned(), fields, amount: None }
    }

    /// The text of a generated `String` method: `Name{Key:a,Values:[x y],}`.
    fn generated_text(&self) -> String {
        let fields =
            self.fields.iter().map(|(name, value)| format!("{name}:{},", generated(value)));
        let name = self.go_type.rsplit('.').next().unwrap_or_default();
        format!("{name}{{{}}}", fields.collect::<String>())
    }
}

fn generated(value: &Go) -> String {
    match value {
        Go::Nil => "nil".to_owned(),
        Go::Plain(text) | Go::Text(text) => text.clone(),
        Go::Struct(it) => it.generated_text(),
        Go::Pointer(held) => format!("*{}", generated(held)),
        Go::List { go_type, items } if go_type.starts_with("[]v1.") => {
            let items = items.iter().map(|item| generated(item) + ",");
            format!("{}{{{}}}", go_type.replace("v1.", ""), items.collect::<String>())
        }
        Go::List { items, .. } => {
            format!("[{}]", items.iter().map(generated).collect::<Vec<_>>().join(" "))
        }
        Go::Map { go_type, entries } => {
            let entry = |(key, value): &(String, Go)| {
                format!("{}: {},", key.trim_matches('"'), generated(value))
            };
            format!("{go_type}{{{}}}", entries.iter().map(entry).collect::<String>())
        }
    }
}

/// A struct; `around` is the object around it, which has some fields of internal types.
pub(super) fn structure(go_type: &str, value: &Value, around: &Value) -> Go {
    let fields = STRUCTS.get(go_type).into_iter().flatten().map(|field| {
        let held = match (field.json_name, field.json_name.strip_prefix('^')) {
            (".", _) => Some(value),
            (_, Some(name)) => around.get(name),
            (name, None) => value.get(name),
        };
        let held = held.unwrap_or(&Value::Null);
        (field.name, of(field.kind, &field.go_type, held, value))
    });
    Go::Struct(Struct::new(go_type, fields.collect()))
}

fn of(kind: &str, go_type: &str, value: &Value, around: &Value) -> Go {
    let (held_kind, held_type) = inner(kind, go_type);
    match kind.get(..1).unwrap_or_default() {
        "s" => Go::Text(text(value).to_owned()),
        "n" => Go::Plain(value.as_i64().unwrap_or_default().to_string()),
        "b" => Go::Plain(value.as_bool().unwrap_or_default().to_string()),
        "q" => amount(value),
        "i" => int_or_string(value),
        "@" => structure(go_type, value, around),
        "t" => Go::Plain("0".to_owned()),
        _ if value.is_null() => Go::Nil,
        "p" => Go::Pointer(Box::new(of(held_kind, held_type, value, around))),
        "l" => {
            let items = value.as_array().into_iter().flatten();
            let items = items.map(|item| of(held_kind, held_type, item, value)).collect();
            Go::List { go_type: go_type.to_owned(), items }
        }
        _ => {
            let has_text = kind.starts_with('M');
            let entries = sorted(value).unwrap_or_default().into_iter().map(|(key, value)| {
                let key = if has_text { format!("s{}", quoted(key)) } else { quoted(key) };
                (key, of(held_kind, "", value, value))
            });
            Go::Map { go_type: go_type.to_owned(), entries: entries.collect() }
        }
    }
}

fn amount(value: &Value) -> Go {
    let Amount { number, scale, text: kept, format } = quantity(value);
    let amount = vec![("value", Go::Plain(number)), ("scale", Go::Plain(scale.to_string()))];
    let fields = vec![
        ("i", Go::Struct(Struct::new("resource.int64Amount", amount))),
        ("s", Go::Text(kept.to_owned())),
        ("Format", Go::Text(format.to_owned())),
    ];
    let nanos = Quantity::parse(text(value)).map_or(0, |amount| amount.nanos());
    let amount = Some((nanos, text(value).to_owned()));
    Go::Struct(Struct { amount, ..Struct::new("resource.Quantity", fields) })
}

fn int_or_string(value: &Value) -> Go {
    let fields = vec![
        ("Type", Go::Plain(u8::from(value.is_string()).to_string())),
        ("IntVal", Go::Plain(value.as_i64().unwrap_or_default().to_string())),
        ("StrVal", Go::Text(text(value).to_owned())),
    ];
    Go::Struct(Struct::new("intstr.IntOrString", fields))
}
