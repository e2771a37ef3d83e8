//! Prints objects like Go structs: in validation errors, and for template hashes.
//!
//! Defines the order and the types of Go's fields, read from `go-structs.txt`, which
//! `cargo xtask pack` writes. Pure. `diff` shows what differs between two structs.

mod diff;
mod layout;
#[cfg(test)]
mod recorded_tests;
mod value;

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::Value;

use crate::quantity::Quantity;

/// Go prints the address of a pointer's target; no client can rely on it.
const POINTER: &str = "0xc000000000";

/// One field of a struct. The kind is a letter; for pointers, lists and maps, it is followed by the
/// kind of their content: `s` string, `n` number, `b` boolean, `t` time, `q` quantity, `i` integer
/// or string, `@` struct, `p` pointer, `l` list, `m` map, `M` map whose keys have a `String` method.
struct Field {
    name: &'static str,
    json_name: &'static str,
    kind: &'static str,
    go_type: String,
}

/// Structs of two packages with the same fields share their lines: `core.Volume=v1.Volume`.
static STRUCTS: LazyLock<HashMap<&'static str, Vec<Field>>> = LazyLock::new(|| {
    let mut structs: HashMap<&str, Vec<Field>> = HashMap::new();
    let mut current = "";
    let lines = include_str!("go-structs.txt").lines().filter(|line| !line.starts_with('#'));
    for line in lines {
        let mut words = line.split_whitespace();
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some(name), Some(json_name), Some(kind), Some(go_type)) => {
                for owner in current.split('=') {
                    let package = owner.find('.').map_or("", |dot| &owner[..=dot]);
                    let go_type = go_type.replace('~', package);
                    let field = Field { name, json_name, kind, go_type };
                    structs.entry(owner).or_default().push(field);
                }
            }
            (Some(name), ..) => current = name,
            _ => {}
        }
    }
    structs
});

/// The fields of a struct with their values; fields of embedded structs are inlined.
fn fields<'a>(
    go_type: &str,
    value: &'a Value,
) -> impl Iterator<Item = (&'static Field, &'a Value)> {
    let fields = STRUCTS.get(go_type).into_iter().flatten();
    fields.map(move |field| match field.json_name {
        "." => (field, value),
        name => (field, value.get(name).unwrap_or(&Value::Null)),
    })
}

/// The kind and the type of the content of a pointer or a list.
fn inner<'a>(kind: &'a str, go_type: &'a str) -> (&'a str, &'a str) {
    let held = go_type.strip_prefix('*').or_else(|| go_type.strip_prefix("[]"));
    (kind.get(1..).unwrap_or_default(), held.unwrap_or(go_type))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The fields of a map, in the order of their keys.
fn sorted(value: &Value) -> Option<Vec<(&String, &Value)>> {
    let mut entries: Vec<(&String, &Value)> = value.as_object()?.iter().collect();
    entries.sort_by_key(|(key, _)| *key);
    Some(entries)
}

/// Prints a struct, such as `core.PodTemplateSpec`, like `%#v`.
pub(crate) fn printed(go_type: &str, value: &Value) -> String {
    let fields: Vec<String> = fields(go_type, value)
        .map(|(field, value)| {
            format!("{}:{}", field.name, print(field.kind, &field.go_type, value))
        })
        .collect();
    format!("{go_type}{{{}}}", fields.join(", "))
}

fn print(kind: &str, go_type: &str, value: &Value) -> String {
    let (held_kind, held_type) = inner(kind, go_type);
    let collection = |items: Option<Vec<String>>| match items {
        Some(items) => format!("{go_type}{{{}}}", items.join(", ")),
        None => format!("{go_type}(nil)"),
    };
    match kind.get(..1).unwrap_or_default() {
        "s" => format!("{:?}", text(value)),
        "n" => value.as_i64().unwrap_or_default().to_string(),
        "b" => value.as_bool().unwrap_or_default().to_string(),
        "t" => "time.Date(1, time.January, 1, 0, 0, 0, 0, time.UTC)".to_owned(),
        "q" => {
            let Amount { number, scale, text, format } = quantity(value);
            format!(
                "resource.Quantity{{i:resource.int64Amount{{value:{number}, scale:{scale}}}, \
                 d:resource.infDecAmount{{Dec:(*inf.Dec)(nil)}}, s:{text:?}, Format:{format:?}}}"
            )
        }
        "@" => printed(go_type, value),
        // Times have their own format, and nil is `<nil>`.
        "p" if value.is_null() && go_type == "*v1.Time" => "<nil>".to_owned(),
        "p" if value.is_null() => format!("({go_type})(nil)"),
        "p" => format!("({go_type})({POINTER})"),
        "l" => collection(
            value
                .as_array()
                .map(|items| items.iter().map(|item| print(held_kind, held_type, item)).collect()),
        ),
        _ => collection(sorted(value).map(|entries| {
            let entry = |(key, value)| format!("{key:?}:{}", print(held_kind, "", value));
            entries.into_iter().map(entry).collect()
        })),
    }
}

/// What differs between two structs, as go-cmp shows it.
pub(crate) fn difference(go_type: &str, old: &Value, new: &Value) -> String {
    let [old, new] = [old, new].map(|value| value::structure(go_type, value, value));
    diff::difference(&old, &new).map(|text| layout::render(&text)).unwrap_or_default()
}

/// Prints a struct, such as `v1.PodTemplateSpec`, as controllers do for its hash.
pub fn dumped(go_type: &str, value: &Value) -> String {
    format!("({go_type}){}", dump("@", go_type, value))
}

fn dump(kind: &str, go_type: &str, value: &Value) -> String {
    let (held_kind, held_type) = inner(kind, go_type);
    match kind.get(..1).unwrap_or_default() {
        "s" => text(value).to_owned(),
        "n" => value.as_i64().unwrap_or_default().to_string(),
        "b" => value.as_bool().unwrap_or_default().to_string(),
        "t" => "{Time:(time.Time){wall:(uint64)0 ext:(int64)0 loc:(*time.Location)<nil>}}".into(),
        "q" if value.is_string() => {
            let Amount { number, scale, text, format } = quantity(value);
            format!(
                "{{i:(resource.int64Amount){{value:(int64){number} scale:(resource.Scale){scale}}} \
                 d:(resource.infDecAmount){{Dec:(*inf.Dec)<nil>}} s:(string){text} \
                 Format:(resource.Format){format}}}"
            )
        }
        "i" => {
            let (kind, number) = (u8::from(value.is_string()), value.as_i64().unwrap_or_default());
            format!(
                "{{Type:(intstr.Type){kind} IntVal:(int32){number} StrVal:(string){}}}",
                text(value)
            )
        }
        "@" => {
            let fields: Vec<String> = fields(go_type, value)
                .map(|(field, value)| {
                    let content = dump(field.kind, &field.go_type, value);
                    format!("{}:({}){content}", field.name, field.go_type)
                })
                .collect();
            format!("{{{}}}", fields.join(" "))
        }
        _ if value.is_null() => "<nil>".to_owned(),
        "p" => dump(held_kind, held_type, value),
        "l" => {
            let items = value.as_array().into_iter().flatten();
            let items: Vec<String> = items.map(|item| dump(held_kind, held_type, item)).collect();
            format!("[{}]", items.join(" "))
        }
        _ => {
            let entries: Vec<String> = sorted(value)
                .unwrap_or_default()
                .into_iter()
                .map(|(key, value)| format!("{key}:{}", dump(held_kind, "", value)))
                .collect();
            format!("map[{}]", entries.join(" "))
        }
    }
}

/// A quantity as Go keeps it.
struct Amount<'a> {
    number: String,
    /// The power of ten.
    scale: i32,
    /// The text from which it was read, if that is certain to be canonical.
    text: &'a str,
    /// The family of suffixes.
    format: &'static str,
}

/// Reads an amount in its canonical form.
fn quantity(value: &Value) -> Amount<'_> {
    const DECIMAL: [(&str, i32); 9] = [
        ("n", -9),
        ("u", -6),
        ("m", -3),
        ("k", 3),
        ("M", 6),
        ("G", 9),
        ("T", 12),
        ("P", 15),
        ("E", 18),
    ];
    let text = text(value);
    if text.ends_with('i') {
        let whole = Quantity::parse(text).map_or(0, |amount| amount.nanos() / 1_000_000_000);
        let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        // Go suspects that a multiple of eight could be written with a larger suffix.
        let is_kept = digits.parse::<i64>().is_ok_and(|number| number % 8 != 0);
        let text = if is_kept { text } else { "" };
        return Amount { number: whole.to_string(), scale: 0, text, format: "BinarySI" };
    }
    let scaled =
        DECIMAL.iter().find_map(|(suffix, scale)| Some((text.strip_suffix(suffix)?, *scale)));
    let (digits, scale) = scaled.unwrap_or((text, 0));
    Amount { number: digits.to_owned(), scale, text, format: "DecimalSI" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn structs_have_all_their_fields_in_the_order_of_go() {
        let port = json!({"name": "http", "containerPort": 80, "protocol": "TCP"});
        assert_eq!(
            printed("core.ContainerPort", &port),
            "core.ContainerPort{Name:\"http\", HostPort:0, ContainerPort:80, Protocol:\"TCP\", \
             HostIP:\"\"}"
        );
    }

    #[test]
    fn pointers_are_addresses_and_nothing_is_nil() {
        let shown = printed("core.Toleration", &json!({"key": "k", "tolerationSeconds": 5}));
        assert_eq!(
            shown,
            "core.Toleration{Key:\"k\", Operator:\"\", Value:\"\", Effect:\"\", \
             TolerationSeconds:(*int64)(0xc000000000)}"
        );
        let metadata = printed("v1.ObjectMeta", &json!({"labels": {"b": "2", "a": "1"}}));
        assert!(metadata.contains("DeletionTimestamp:<nil>, "), "{metadata}");
        let labels = "Labels:map[string]string{\"a\":\"1\", \"b\":\"2\"}";
        assert!(metadata.contains(labels), "{metadata}");
        assert!(metadata.contains("Finalizers:[]string(nil)"), "{metadata}");
    }

    /// The output of Go's `dump.ForHash` for the same object.
    #[test]
    fn dumps_follow_pointers_and_leave_out_the_types_of_items() {
        let requirements = json!({"limits": {"memory": "1Gi", "cpu": "500m"}});
        assert_eq!(
            dumped("v1.ResourceRequirements", &requirements),
            "(v1.ResourceRequirements){Limits:(v1.ResourceList)map[cpu:{i:(resource.int64Amount)\
             {value:(int64)500 scale:(resource.Scale)-3} d:(resource.infDecAmount){Dec:(*inf.Dec)\
             <nil>} s:(string)500m Format:(resource.Format)DecimalSI} memory:{\
             i:(resource.int64Amount){value:(int64)1073741824 scale:(resource.Scale)0} \
             d:(resource.infDecAmount){Dec:(*inf.Dec)<nil>} s:(string)1Gi \
             Format:(resource.Format)BinarySI}] Requests:(v1.ResourceList)<nil> \
             Claims:([]v1.ResourceClaim)<nil>}"
        );
        // Go keeps no text of multiples of eight with a binary suffix.
        let large = dumped("v1.ResourceRequirements", &json!({"limits": {"memory": "64Mi"}}));
        assert!(large.contains("value:(int64)67108864 scale:(resource.Scale)0}"), "{large}");
        assert!(large.contains("s:(string) Format:(resource.Format)BinarySI"), "{large}");
        let probe = json!({"httpGet": {"path": "/", "port": "http", "scheme": "HTTP"}});
        assert_eq!(
            dumped("v1.ProbeHandler", &probe),
            "(v1.ProbeHandler){Exec:(*v1.ExecAction)<nil> HTTPGet:(*v1.HTTPGetAction){\
             Path:(string)/ Port:(intstr.IntOrString){Type:(intstr.Type)1 IntVal:(int32)0 \
             StrVal:(string)http} Host:(string) Scheme:(v1.URIScheme)HTTP \
             HTTPHeaders:([]v1.HTTPHeader)<nil>} TCPSocket:(*v1.TCPSocketAction)<nil> \
             GRPC:(*v1.GRPCAction)<nil>}"
        );
    }
}
