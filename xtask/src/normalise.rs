//! Replaces what differs from run to run, so that two API servers compare.
//!
//! Pure, and needs `serde_json` only: the golden replay of the embedded server
//! includes this file by path. One `Normaliser` per server and sequence, fed in
//! the order of the exchanges: ordinals count first appearances, so equality
//! of identities is kept while their values are dropped.

use serde_json::{Map, Value};

/// Fields that hold the server's clock.
const TIME_FIELDS: [&str; 15] = [
    "creationTimestamp",
    "deletionTimestamp",
    "time",
    "lastTransitionTime",
    "lastUpdateTime",
    "lastProbeTime",
    "lastHeartbeatTime",
    "startTime",
    "startedAt",
    "finishedAt",
    "completionTime",
    "firstTimestamp",
    "lastTimestamp",
    "expirationTimestamp",
    "lastScheduleTime",
];
/// Table columns that count seconds since some event.
const AGE_COLUMNS: [&str; 4] = ["Age", "Last Seen", "First Seen", "Duration"];
const GENERATED_SUFFIX: usize = 5;
const NODE_PORTS: std::ops::RangeInclusive<u64> = 30000..=32767;
/// The service range of the recorded and of the embedded cluster.
const SERVICE_NETWORK: &str = "10.96.";

/// Remembers identities of one server, in order of first appearance.
#[derive(Default)]
pub(crate) struct Normaliser {
    aliases: Vec<(String, String)>,
    uids: Vec<String>,
    versions: Vec<String>,
    addresses: Vec<String>,
    generated: Vec<(String, String)>,
}

impl Normaliser {
    /// Prints `placeholder` wherever `text` occurs, such as a random namespace.
    pub(crate) fn with_alias(mut self, text: &str, placeholder: &str) -> Self {
        self.aliases.push((text.to_owned(), placeholder.to_owned()));
        self
    }

    /// Normalises a response body or a watch event.
    pub(crate) fn value(&mut self, value: &Value) -> Value {
        self.collect_generated(value);
        let mut result = self.walk("", value);
        if result["type"] == "BOOKMARK" {
            set_string(&mut result["object"]["metadata"], "resourceVersion", "<list-rv>");
        }
        result
    }

    /// Normalises free text: an error message, a warning, a YAML body.
    pub(crate) fn text(&mut self, text: &str) -> String {
        if text.contains("-----BEGIN ") || text.starts_with("LS0tLS1") {
            return "<pem>".to_owned();
        }
        if text.starts_with("eyJ") && text.matches('.').count() == 2 {
            return "<jwt>".to_owned();
        }
        let mut text = text.to_owned();
        for (from, to) in self.aliases.iter().chain(&self.generated) {
            text = text.replace(from.as_str(), to);
        }
        text = replace_runs(&text, is_uid_letter, |run| {
            is_uid(run).then(|| ordinal(&mut self.uids, "uid", run))
        });
        text = replace_runs(
            &text,
            |letter| letter.is_ascii_digit() || letter == '.',
            |run| {
                (run.starts_with(SERVICE_NETWORK) && run.matches('.').count() == 3)
                    .then(|| ordinal(&mut self.addresses, "ip", run))
            },
        );
        text = replace_runs(&text, is_time_letter, |run| is_time(run).then(|| time_token(run)));
        text = replace_runs(
            &text,
            |letter| letter.is_ascii_alphanumeric(),
            |run| {
                let is_pointer = run.starts_with("0xc") && run.len() >= 10;
                is_pointer.then(|| "<pointer>".to_owned())
            },
        );
        self.versions_in_text(text)
    }

    /// Only messages about versions: other numbers in messages matter.
    fn versions_in_text(&self, text: String) -> String {
        let lower = text.to_ascii_lowercase();
        if !lower.contains("resource version") && !lower.contains("resourceversion") {
            return text;
        }
        replace_runs(
            &text,
            |letter| letter.is_ascii_digit(),
            |run| match self.versions.iter().position(|known| known == run) {
                Some(index) => Some(format!("<rv:{}>", index + 1)),
                None => (run.len() > 1).then(|| "<rv>".to_owned()),
            },
        )
    }

    fn walk(&mut self, field: &str, value: &Value) -> Value {
        match value {
            Value::Object(fields) => self.object(fields),
            Value::Array(items) => {
                let mut items: Vec<Value> = items.iter().map(|item| self.walk("", item)).collect();
                sort_unordered(field, &mut items);
                Value::Array(items)
            }
            Value::String(text) => Value::String(self.string(field, text)),
            Value::Number(number)
                if matches!(field, "nodePort" | "healthCheckNodePort")
                    && number.as_u64().is_some_and(|port| NODE_PORTS.contains(&port)) =>
            {
                Value::from("<node-port>")
            }
            _ => value.clone(),
        }
    }

    fn object(&mut self, fields: &Map<String, Value>) -> Value {
        let is_list = fields.get("items").is_some_and(Value::is_array)
            || fields.contains_key("columnDefinitions");
        let mut result = Map::new();
        for (field, value) in fields {
            let value = match (field.as_str(), value) {
                ("metadata", Value::Object(metadata)) if is_list => self.list_metadata(metadata),
                ("fieldsV1", _) => value.clone(),
                _ => self.walk(field, value),
            };
            result.insert(field.clone(), value);
        }
        if is_list {
            mask_ages(&mut result);
        }
        if result.get("kind").is_some_and(|kind| kind == "Status") {
            shorten_message(&mut result);
        }
        Value::Object(result)
    }

    fn list_metadata(&mut self, metadata: &Map<String, Value>) -> Value {
        let mut result = metadata.clone();
        for (field, placeholder) in [("resourceVersion", "<list-rv>"), ("continue", "<continue>")] {
            if result.get(field).and_then(Value::as_str).is_some_and(|text| !text.is_empty()) {
                result.insert(field.to_owned(), Value::from(placeholder));
            }
        }
        Value::Object(result)
    }

    fn string(&mut self, field: &str, text: &str) -> String {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if field == "resourceVersion" && is_number {
            return ordinal(&mut self.versions, "rv", text);
        }
        if TIME_FIELDS.contains(&field) && is_time(text) {
            return time_token(text);
        }
        if field == "continue" && !text.is_empty() {
            return "<continue>".to_owned();
        }
        // Times that a user wrote into other fields are data, not the clock's.
        if is_time(text) {
            return text.to_owned();
        }
        self.text(text)
    }

    fn collect_generated(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => {
                let text = |field| fields.get(field).and_then(Value::as_str);
                if let (Some(prefix), Some(name)) = (text("generateName"), text("name")) {
                    self.add_generated(prefix, name);
                }
                fields.values().for_each(|value| self.collect_generated(value));
            }
            Value::Array(items) => items.iter().for_each(|item| self.collect_generated(item)),
            _ => {}
        }
    }

    fn add_generated(&mut self, prefix: &str, name: &str) {
        let is_generated =
            name.starts_with(prefix) && name.len() == prefix.len() + GENERATED_SUFFIX;
        if is_generated && !self.generated.iter().any(|(known, _)| known == name) {
            let placeholder = format!("{prefix}<generated:{}>", self.generated.len() + 1);
            self.generated.push((name.to_owned(), placeholder));
        }
    }
}

/// Carries uids, versions and generated names from a recording to a live run.
///
/// A replay sends recorded requests to a live server: identities in them have
/// to become the live ones, which are learnt by laying the two answers side by side.
#[derive(Default)]
pub(crate) struct Translation {
    pairs: Vec<(String, String)>,
}

impl Translation {
    /// Learns from one recorded answer and the live answer in its place.
    pub(crate) fn learn(&mut self, recorded: &Value, live: &Value) {
        match (recorded, live) {
            (Value::Object(recorded), Value::Object(live)) => {
                let is_generated = recorded.contains_key("generateName");
                for (field, value) in recorded {
                    let Some(live) = live.get(field) else { continue };
                    let is_identity =
                        matches!(field.as_str(), "uid" | "resourceVersion" | "continue");
                    if is_identity || (is_generated && field == "name") {
                        self.add(value, live);
                    } else {
                        self.learn(value, live);
                    }
                }
            }
            (Value::Array(recorded), Value::Array(live)) => {
                recorded.iter().zip(live).for_each(|(recorded, live)| self.learn(recorded, live));
            }
            _ => {}
        }
    }

    /// The live form of a recorded path, query or body.
    pub(crate) fn apply(&self, text: &str) -> String {
        replace_runs(text, is_name_letter, |run| {
            // The last pair wins: a list version may repeat an older one.
            self.pairs.iter().rev().find(|(from, _)| from == run).map(|(_, to)| to.clone())
        })
    }

    fn add(&mut self, recorded: &Value, live: &Value) {
        let (Some(from), Some(to)) = (recorded.as_str(), live.as_str()) else { return };
        // Short numbers are ports, counts and versions that the request invented.
        if from.len() >= 3 && from != to {
            self.pairs.retain(|(known, _)| known != from);
            self.pairs.push((from.to_owned(), to.to_owned()));
        }
    }
}

fn ordinal(known: &mut Vec<String>, kind: &str, text: &str) -> String {
    let index = known.iter().position(|known| known == text).unwrap_or_else(|| {
        known.push(text.to_owned());
        known.len() - 1
    });
    format!("<{kind}:{}>", index + 1)
}

/// Maximal runs of matching letters, each offered for replacement.
fn replace_runs(
    text: &str,
    is_part: impl Fn(char) -> bool,
    mut replace: impl FnMut(&str) -> Option<String>,
) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(&is_part) {
        let (before, run) = rest.split_at(start);
        let end = run.find(|letter| !is_part(letter)).unwrap_or(run.len());
        let (run, after) = run.split_at(end);
        result.push_str(before);
        result.push_str(replace(run).as_deref().unwrap_or(run));
        rest = after;
    }
    result + rest
}

fn is_uid_letter(letter: char) -> bool {
    letter.is_ascii_hexdigit() || letter == '-'
}

fn is_name_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.' | '_')
}

fn is_time_letter(letter: char) -> bool {
    letter.is_ascii_digit() || matches!(letter, '-' | ':' | '.' | 'T' | 'Z' | '+')
}

fn is_uid(run: &str) -> bool {
    let parts: Vec<usize> = run.split('-').map(str::len).collect();
    parts == [8, 4, 4, 4, 12]
}

fn is_time(run: &str) -> bool {
    let shape: String = run
        .chars()
        .take(19)
        .map(|letter| if letter.is_ascii_digit() { '0' } else { letter })
        .collect();
    shape == "0000-00-00T00:00:00" && run.ends_with('Z')
}

fn time_token(text: &str) -> String {
    if text.contains('.') { "<microtime>".to_owned() } else { "<time>".to_owned() }
}

/// Sorts lists whose order depends on the second in which things happened.
fn sort_unordered(field: &str, items: &mut [Value]) {
    let fields: &[&str] = match field {
        "managedFields" => &["operation", "manager", "apiVersion", "subresource", "fieldsV1"],
        "conditions" => &["type"],
        "causes" => &["field", "reason", "message"],
        _ => return,
    };
    items.sort_by_cached_key(|item| {
        fields.iter().map(|field| item[*field].to_string()).collect::<Vec<_>>()
    });
}

/// With several causes the message joins them in no fixed order; the causes
/// themselves are compared, so the message keeps its beginning only.
fn shorten_message(status: &mut Map<String, Value>) {
    let causes = status.get("details").and_then(|details| details["causes"].as_array());
    if causes.is_none_or(|causes| causes.len() < 2) {
        return;
    }
    let message = status.get("message").and_then(Value::as_str).unwrap_or_default();
    if let Some((beginning, _)) = message.split_once(": [") {
        let message = format!("{beginning}: [<causes>]");
        status.insert("message".to_owned(), Value::from(message));
    }
}

fn mask_ages(table: &mut Map<String, Value>) {
    let Some(columns) = table.get("columnDefinitions").and_then(Value::as_array) else { return };
    let ages: Vec<usize> = columns
        .iter()
        .enumerate()
        .filter(|(_, column)| AGE_COLUMNS.iter().any(|age| column["name"] == *age))
        .map(|(index, _)| index)
        .collect();
    let Some(rows) = table.get_mut("rows").and_then(Value::as_array_mut) else { return };
    for row in rows {
        for index in &ages {
            let Some(cell) = row["cells"].get_mut(*index) else { continue };
            let is_age =
                cell.as_str().is_some_and(|text| text.starts_with(|c: char| c.is_ascii_digit()));
            if is_age {
                *cell = Value::from("<age>");
            }
        }
    }
}

fn set_string(object: &mut Value, field: &str, text: &str) {
    if object.get(field).is_some() {
        object[field] = Value::from(text);
    }
}

#[cfg(test)]
mod tests;
