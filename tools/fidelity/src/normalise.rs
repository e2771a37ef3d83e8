//! Replaces what differs between runs, so that two API servers can be compared.
//!
//! Pure, and needs only `serde_json`: the golden replay of the embedded server includes this file
//! by path. Use one `Normaliser` per server and sequence, in the order of the exchanges: ordinals
//! count first appearances, so equality of identities is kept while their values are dropped.

use serde_json::{Map, Value};

/// Fields with times of the server's clock.
const TIME_FIELDS: [&str; 16] = [
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
    "lastPhaseTransitionTime",
];
const GENERATED_SUFFIX: usize = 5;
/// The prefix of a Pod's token volume, which has a random suffix without `generateName`.
const TOKEN_VOLUME: &str = "kube-api-access-";
const NODE_PORTS: std::ops::RangeInclusive<u64> = 30000..=32767;
/// The service range of the recorded and of the embedded cluster.
const SERVICE_NETWORK: &str = "10.96.";

/// Assigns ordinals to the identities of one server, in order of first appearance.
#[derive(Default)]
pub struct Normaliser {
    aliases: Vec<(String, String)>,
    uids: Vec<String>,
    versions: Vec<String>,
    addresses: Vec<String>,
    generated: Vec<(String, String)>,
    /// Whether to compare the descriptions of table columns. The goldens have none.
    pub(crate) keeps_descriptions: bool,
}

impl Normaliser {
    /// Replaces `text`, such as a random namespace, with `placeholder`.
    pub fn with_alias(mut self, text: &str, placeholder: &str) -> Self {
        self.aliases.push((text.to_owned(), placeholder.to_owned()));
        self
    }

    /// Normalises a response body or a watch event.
    pub fn value(&mut self, value: &Value) -> Value {
        self.collect_generated(value);
        let mut result = self.walk("", value);
        if result["type"] == "BOOKMARK" {
            set_string(&mut result["object"]["metadata"], "resourceVersion", "<list-rv>");
        }
        result
    }

    /// Normalises a watch. The times of bookmarks are up to the server, except the one that ends
    /// the initial events.
    pub fn events(&mut self, events: &[Value]) -> Value {
        let is_kept = |event: &&Value| {
            let annotations = &event["object"]["metadata"]["annotations"];
            event["type"] != "BOOKMARK" || annotations.get("k8s.io/initial-events-end").is_some()
        };
        events.iter().filter(is_kept).map(|event| self.value(event)).collect()
    }

    /// Normalises free text: an error message, a warning, a YAML body.
    pub fn text(&mut self, text: &str) -> String {
        if text.contains("-----BEGIN ") || text.starts_with("LS0tLS1") {
            return "<pem>".to_owned();
        }
        if text.starts_with("eyJ") && text.matches('.').count() == 2 {
            return "<jwt>".to_owned();
        }
        let mut text = text.to_owned();
        // A generated name may start with the random namespace.
        for (from, to) in self.generated.iter().chain(&self.aliases) {
            text = text.replace(from.as_str(), to);
        }
        // The range itself is the same everywhere; its first address could be that of a service.
        text = text.replace("10.96.0.0/16", "<service range>");
        text = without_go_dates(&text);
        text = with_plain_indents(&text);
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
                let digits = run.strip_prefix("0x").unwrap_or_default();
                let is_pointer =
                    digits.len() >= 8 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
                is_pointer.then(|| "<pointer>".to_owned())
            },
        );
        self.versions_in_text(without_source_path(&text))
    }

    /// Only for messages about versions: other numbers in messages matter.
    fn versions_in_text(&self, text: String) -> String {
        let lower = text.to_ascii_lowercase();
        if !lower.contains("resource version") && !lower.contains("resourceversion") {
            return text;
        }
        replace_runs(
            &text,
            |letter| letter.is_ascii_digit(),
            |run| match self.versions.iter().position(|known| known == run) {
                // The newest version depends on other activity on the server.
                Some(_) if lower.contains("too large resource version") => Some("<rv>".to_owned()),
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
        let is_kind = |kind: &Value| kind.as_str().is_some_and(|kind| kind.ends_with("List"));
        let is_list = fields.get("items").is_some_and(Value::is_array)
            || (fields.contains_key("items") && fields.get("kind").is_some_and(is_kind))
            || fields.get("rows").is_some_and(Value::is_array);
        let mut result = Map::new();
        for (field, value) in fields {
            let value = match (field.as_str(), value) {
                ("metadata", Value::Object(metadata)) if is_list => self.list_metadata(metadata),
                ("fieldsV1", _) => self.owned_fields(value),
                _ => self.walk(field, value),
            };
            result.insert(field.clone(), value);
        }
        if let Some(rows) = result.get_mut("rows").and_then(Value::as_array_mut) {
            rows.iter_mut().for_each(mask_ages);
        }
        let columns = result.get_mut("columnDefinitions").and_then(Value::as_array_mut);
        if let Some(columns) = columns.filter(|_| !self.keeps_descriptions) {
            columns.iter_mut().for_each(drop_description);
        }
        if result.get("kind").is_some_and(|kind| kind == "Status") {
            shorten_message(&mut result);
            sort_limits(&mut result);
        }
        Value::Object(result)
    }

    /// Keys of owned fields contain uids of owners; a key cannot be paired, so the uid has no
    /// ordinal.
    fn owned_fields(&self, value: &Value) -> Value {
        let Value::Object(fields) = value else { return value.clone() };
        let fields = fields.iter().map(|(key, value)| {
            let mut key =
                replace_runs(key, is_uid_letter, |run| is_uid(run).then(|| "<uid>".to_owned()));
            for (from, to) in &self.aliases {
                key = key.replace(from.as_str(), to);
            }
            (key, self.owned_fields(value))
        });
        Value::Object(fields.collect())
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
        // Times that a user wrote to other fields are data, not from the clock.
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
                if let Some(name) = text("name") {
                    self.add_generated(TOKEN_VOLUME, name);
                }
                if let (Some(prefix), Some(name)) = (refused_prefix(fields), text("name")) {
                    self.add_generated(&prefix, name);
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

/// The invalid prefix in the details of an error about a generated name.
fn refused_prefix(details: &Map<String, Value>) -> Option<String> {
    let causes = details.get("causes")?.as_array()?;
    let cause = causes.iter().find(|cause| cause["field"] == "metadata.generateName")?;
    let quoted = cause["message"].as_str()?.strip_prefix("Invalid value: \"")?;
    Some(quoted.split_once('"')?.0.to_owned())
}

/// Comparisons by go-cmp start their lines with two plain or two non-breaking spaces, or with a mark
/// and one of either kind; which one is random, to keep clients from parsing them.
fn with_plain_indents(text: &str) -> String {
    if !text.contains('\u{a0}') {
        return text.to_owned();
    }
    let plain = |line: &str| match line.split_at_checked(3) {
        Some(("-\u{a0}", rest)) => format!("- {rest}"),
        Some(("+\u{a0}", rest)) => format!("+ {rest}"),
        _ => match line.strip_prefix("\u{a0}\u{a0}") {
            Some(rest) => format!("  {rest}"),
            None => line.to_owned(),
        },
    };
    text.split('\n').map(plain).collect::<Vec<_>>().join("\n")
}

/// Drops the times in dumps of Go structs; the zero time is kept.
fn without_go_dates(text: &str) -> String {
    const DATE: &str = "time.Date(";
    let mut parts = text.split(DATE);
    let mut result = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        result.push_str(DATE);
        match part.split_once(')') {
            Some((date, rest)) if !date.starts_with("1, ") => {
                result.push_str("<time>)");
                result.push_str(rest);
            }
            _ => result.push_str(part),
        }
    }
    result
}

/// Translates uids, versions and generated names from a recording to a live run.
///
/// A replay sends recorded requests to a live server. Identities in them must be replaced by live
/// ones, which are learned by comparing the two responses.
#[derive(Default)]
pub struct Translation {
    pairs: Vec<(String, String)>,
}

impl Translation {
    /// Learns from a recorded response and the corresponding live response.
    pub fn learn(&mut self, recorded: &Value, live: &Value) {
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
    pub fn apply(&self, text: &str) -> String {
        replace_runs(text, is_name_letter, |run| {
            // The last pair wins: a list version may repeat an older one.
            self.pairs.iter().rev().find(|(from, _)| from == run).map(|(_, to)| to.clone())
        })
    }

    fn add(&mut self, recorded: &Value, live: &Value) {
        let (Some(from), Some(to)) = (recorded.as_str(), live.as_str()) else { return };
        // Short numbers are ports, counts and versions made up by the request.
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

/// Passes maximal runs of matching letters to a replacement function.
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

/// Names of schemes are locations in Go source, and change with the compiler.
fn without_source_path(text: &str) -> String {
    let Some((before, after)) = text.split_once("in scheme \"") else { return text.to_owned() };
    let rest = after.split_once('"').map_or("", |(_, rest)| rest);
    format!("{before}in scheme \"<source>\"{rest}")
}

fn is_uid_letter(letter: char) -> bool {
    letter.is_ascii_hexdigit() || letter == '-'
}

/// Includes `%`, since the digits of an escape such as `%281` are not a version.
fn is_name_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.' | '_' | '%')
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

/// Sorts lists whose order depends on the time.
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

/// The message joins several causes in no fixed order. The causes themselves are compared, so only
/// the beginning of the message is kept.
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

/// The limits of a range that a Pod does not keep, which upstream collects from maps.
fn sort_limits(status: &mut Map<String, Value>) {
    const LIMIT: &str = " usage per ";
    let message = status.get("message").and_then(Value::as_str).unwrap_or_default();
    let Some((beginning, list)) = message.split_once(" is forbidden: [") else { return };
    let Some(list) = list.strip_suffix(']').filter(|list| list.contains(LIMIT)) else { return };
    let mut limits: Vec<String> = Vec::new();
    for part in list.split(", ") {
        match limits.last_mut().filter(|_| part.starts_with("but ")) {
            Some(limit) => *limit = format!("{limit}, {part}"),
            None => limits.push(part.to_owned()),
        }
    }
    limits.sort_unstable();
    let message = format!("{beginning} is forbidden: [{}]", limits.join(", "));
    status.insert("message".to_owned(), Value::from(message));
}

/// Later events of a watch have no column names, so ages are recognised by their format: `5s`,
/// `3m2s`, `4d`.
fn mask_ages(row: &mut Value) {
    let is_age = |text: &str| {
        text.starts_with(|letter: char| letter.is_ascii_digit())
            && text.ends_with(['s', 'm', 'h', 'd', 'y'])
            && text.chars().all(|letter| letter.is_ascii_digit() || "smhdy".contains(letter))
    };
    for cell in row["cells"].as_array_mut().into_iter().flatten() {
        // Some columns show the creation time instead of the age.
        if cell.as_str().is_some_and(|text| is_age(text) || is_time(text)) {
            *cell = Value::from("<age>");
        } else if cell.as_str().is_some_and(is_time) {
            // Kinds without their own columns show the creation time.
            *cell = Value::from("<time>");
        }
    }
}

/// The goldens have no descriptions of columns, which are documentation.
fn drop_description(column: &mut Value) {
    if let Some(fields) = column.as_object_mut() {
        fields.remove("description");
    }
}

fn set_string(object: &mut Value, field: &str, text: &str) {
    if object.get(field).is_some() {
        object[field] = Value::from(text);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const UID: &str = "8c28e8c9-c6bc-4ce6-b6c3-fb8b3eb1274e";

    #[test]
    fn generated_names_in_a_random_namespace_compare() {
        let mut one = Normaliser::default().with_alias("diff-a", "<ns>");
        let name = json!({"generateName": "diff-a-g", "name": "diff-a-gx7k2p"});
        assert_eq!(one.value(&name)["name"], "<ns>-g<generated:1>");
    }

    #[test]
    fn generated_names_that_are_refused_compare() {
        let details = json!({"name": "Bad_x7k2p", "causes": [{
            "field": "metadata.generateName", "message": "Invalid value: \"Bad_\": no subdomain"}]});
        assert_eq!(Normaliser::default().value(&details)["name"], "Bad_<generated:1>");
    }

    #[test]
    fn times_in_dumps_of_structs_are_dropped_except_the_zero_time() {
        let dump = "A:time.Date(1, time.January, 1), B:time.Date(2026, time.May, 2, time.UTC)}";
        let shown = Normaliser::default().text(dump);
        assert_eq!(shown, "A:time.Date(1, time.January, 1), B:time.Date(<time>)}");
    }

    #[test]
    fn identities_become_ordinals_of_first_appearance() {
        let mut normaliser = Normaliser::default();
        let object = |version: &str| json!({"metadata": {"uid": UID, "resourceVersion": version}});
        let result = ["305", "307", "305"].map(|version| normaliser.value(&object(version)));
        assert_eq!(result[0], json!({"metadata": {"uid": "<uid:1>", "resourceVersion": "<rv:1>"}}));
        assert_eq!(result[1]["metadata"]["resourceVersion"], "<rv:2>");
        assert_eq!(result[2], result[0]);
    }

    #[test]
    fn list_versions_are_not_counted() {
        let mut normaliser = Normaliser::default();
        let list = json!({"metadata": {"resourceVersion": "9", "continue": "abc"}, "items": [
            {"metadata": {"resourceVersion": "7"}}]});
        assert_eq!(
            normaliser.value(&list),
            json!({"metadata": {"resourceVersion": "<list-rv>", "continue": "<continue>"}, "items": [
                {"metadata": {"resourceVersion": "<rv:1>"}}]})
        );
        let bookmark =
            json!({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "11"}}});
        assert_eq!(
            normaliser.value(&bookmark)["object"]["metadata"]["resourceVersion"],
            "<list-rv>"
        );
    }

    #[test]
    fn only_the_bookmark_after_initial_events_counts() {
        let plain = json!({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "11"}}});
        let mut end = plain.clone();
        end["object"]["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        let events = Normaliser::default().events(&[plain.clone(), end, plain]);
        assert_eq!(events.as_array().map(Vec::len), Some(1));
    }

    #[test]
    fn only_the_clock_of_the_server_is_dropped() {
        let mut normaliser = Normaliser::default();
        let value = json!({"creationTimestamp": "2026-11-15T19:43:59Z", "at": "2026-11-15T19:43:59Z",
            "lastTransitionTime": "2026-11-15T19:43:59.123456Z"});
        assert_eq!(
            normaliser.value(&value),
            json!({"creationTimestamp": "<time>", "at": "2026-11-15T19:43:59Z",
                "lastTransitionTime": "<microtime>"})
        );
    }

    #[test]
    fn generated_names_are_followed_into_other_text() {
        let mut normaliser = Normaliser::default().with_alias("d-77", "<ns>");
        normaliser.value(&json!({"metadata": {"generateName": "x-", "name": "x-abcde"}}));
        assert_eq!(
            normaliser.text("pods \"x-abcde\" in d-77 not found"),
            "pods \"x-<generated:1>\" in <ns> not found"
        );
    }

    #[test]
    fn versions_in_messages_follow_their_ordinals() {
        let mut normaliser = Normaliser::default();
        normaliser.value(&json!({"resourceVersion": "305"}));
        assert_eq!(
            normaliser.text("the ResourceVersion in the precondition (1) does not match 305 or 99"),
            "the ResourceVersion in the precondition (1) does not match <rv:1> or <rv>"
        );
        assert_eq!(normaliser.text("must be at most 305 long"), "must be at most 305 long");
    }

    #[test]
    fn causes_are_a_set() {
        let mut normaliser = Normaliser::default();
        let status = |first: &str, second: &str| {
            json!({"kind": "Status", "message": format!("X \"a\" is invalid: [{first}, {second}]"),
                "details": {"causes": [{"field": first}, {"field": second}]}})
        };
        assert_eq!(normaliser.value(&status("a", "b")), normaliser.value(&status("b", "a")));
    }

    #[test]
    fn limits_are_a_set() {
        let status = |limits: &str| {
            let message = format!("pods \"c\" is forbidden: [{limits}]");
            Normaliser::default().value(&json!({"kind": "Status", "message": message}))
        };
        let cpu = "minimum cpu usage per Container is 50m, but request is 10m";
        let memory = "minimum memory usage per Container is 10Mi, but request is 1Mi";
        assert_eq!(status(&format!("{cpu}, {memory}")), status(&format!("{memory}, {cpu}")));
        let swapped = cpu.replace("10m", "1Mi") + ", " + &memory.replace("1Mi", "10m");
        assert_ne!(status(&format!("{cpu}, {memory}")), status(&swapped));
    }

    #[test]
    fn ages_in_tables_are_masked() {
        let table = json!({"rows": [{"cells": ["a", "5s"]}, {"cells": ["5", "<unknown>"]}]});
        let result = Normaliser::default().value(&table);
        assert_eq!(result["rows"][0]["cells"], json!(["a", "<age>"]));
        assert_eq!(result["rows"][1]["cells"], json!(["5", "<unknown>"]));
    }

    #[test]
    fn owners_in_field_sets_lose_their_uid() {
        let value = json!({"fieldsV1": {format!("k:{{\"uid\":\"{UID}\"}}"): {}}});
        let result = Normaliser::default().value(&value);
        assert_eq!(result, json!({"fieldsV1": {"k:{\"uid\":\"<uid>\"}": {}}}));
    }

    #[test]
    fn a_recorded_request_becomes_a_live_one() {
        let mut translation = Translation::default();
        let answer = |uid: &str, version: &str| json!({"metadata": {"uid": uid, "resourceVersion": version}});
        translation
            .learn(&answer(UID, "305"), &answer("11111111-c6bc-4ce6-b6c3-fb8b3eb1274e", "12"));
        assert_eq!(
            translation.apply("/x?resourceVersion=305&limit=3050&y=%305"),
            "/x?resourceVersion=12&limit=3050&y=%305"
        );
        assert_eq!(translation.apply(UID), "11111111-c6bc-4ce6-b6c3-fb8b3eb1274e");
    }
}
