//! Reads protobuf field numbers, JSON names and pointer-ness from the tags of Go structs.
//!
//! The wire format does not distinguish a zero set by the client from the zero value of a field
//! without a pointer. Go's types do, so they are used instead of the `.proto` files. Each field
//! becomes one line: `number json-name type flags`. Types: `s` string, `b` bool, `i` integer, `d`
//! double, `y` bytes, `mNAME` message, `w` message that wraps a list of strings, prefixed by `[`
//! for lists and `{` for maps. Flags: `p` pointer, `o` omitempty, `i` inline. The Go type follows
//! if it has its own name, since error messages quote it.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use regex::Regex;
use serde_json::{Value, json};

/// The Go types of all modules that were read.
#[derive(Default)]
pub(super) struct Sources {
    structs: BTreeMap<String, Vec<RawField>>,
    /// Named types that are not structs: full name to Go type, with the imports of its file.
    aliases: BTreeMap<String, GoType>,
}

#[derive(Clone)]
struct GoType {
    text: String,
    package: String,
    imports: BTreeMap<String, String>,
}

struct RawField {
    number: u32,
    json_name: String,
    inline: bool,
    omit_empty: bool,
    repeated: bool,
    kind: GoType,
}

impl Sources {
    /// Reads all Go files of a module that define API types.
    pub(super) fn read_module(&mut self, folder: &Path, module: &str) -> anyhow::Result<()> {
        self.read_folder(folder, &format!("io.k8s.{module}"))
    }

    fn read_folder(&mut self, folder: &Path, package: &str) -> anyhow::Result<()> {
        for entry in std::fs::read_dir(folder).with_context(|| format!("reading {folder:?}"))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type()?.is_dir() {
                if !matches!(name.as_str(), "testdata" | "testing" | "third_party" | "test") {
                    self.read_folder(&entry.path(), &format!("{package}.{name}"))?;
                }
            } else if name.ends_with(".go")
                && !name.ends_with("_test.go")
                && !name.contains("generated")
            {
                self.read_source(&std::fs::read_to_string(entry.path())?, package)?;
            }
        }
        Ok(())
    }

    fn read_source(&mut self, source: &str, package: &str) -> anyhow::Result<()> {
        let imports = imports(source)?;
        let alias = Regex::new(r"^type (\w+) (\[\]\S+|map\[\S+|\w+)$")?;
        let opening = Regex::new(r"^type (\w+) struct \{")?;
        let tagged = Regex::new(r#"^\s+(?:(\w+)\s+)?(\S+)\s+`([^`]*protobuf:"[^`]*)`"#)?;
        let mut current: Option<String> = None;
        for line in source.lines() {
            let go_type = |text: &str| GoType {
                text: text.to_owned(),
                package: package.to_owned(),
                imports: imports.clone(),
            };
            if let Some(found) = alias.captures(line) {
                self.aliases.insert(format!("{package}.{}", &found[1]), go_type(&found[2]));
            } else if let Some(found) = opening.captures(line) {
                let name = format!("{package}.{}", &found[1]);
                self.structs.entry(name.clone()).or_default();
                current = Some(name).filter(|_| !line.trim_end().ends_with("{}"));
            } else if line.starts_with('}') {
                current = None;
            } else if let (Some(name), Some(found)) = (&current, tagged.captures(line)) {
                let member = found.get(1).map(|name| name.as_str());
                if let Some(field) = raw_field(member, go_type(&found[2]), &found[3])? {
                    self.structs.get_mut(name).expect("the struct was opened").push(field);
                }
            }
        }
        Ok(())
    }

    /// The tables of all messages: `{"io.k8s.api.core.v1.Volume": ["1 name s o", ...]}`.
    pub(super) fn tables(&self) -> anyhow::Result<Value> {
        let mut tables = serde_json::Map::new();
        for (name, fields) in self.structs.iter().filter(|(_, fields)| !fields.is_empty()) {
            let lines: Vec<String> = fields.iter().map(|field| self.line(field)).collect();
            tables.insert(name.clone(), json!(lines));
        }
        Ok(Value::Object(tables))
    }

    fn line(&self, field: &RawField) -> String {
        let (text, pointer) = match field.kind.text.strip_prefix('*') {
            Some(rest) => (rest, true),
            None => (field.kind.text.as_str(), false),
        };
        let mut flags = String::new();
        for (is_set, flag) in [(pointer, 'p'), (field.omit_empty, 'o'), (field.inline, 'i')] {
            if is_set {
                flags.push(flag);
            }
        }
        let kind = self.kind(text, &field.kind, field.repeated);
        let go_type = self.go_name(text, &field.kind).unwrap_or_default();
        let (number, name) = (field.number, &field.json_name);
        format!("{number} {name} {kind} {flags} {go_type}").trim_end().to_owned()
    }

    /// The name of a Go type that is neither built in nor a struct: `v1.ServiceType`.
    fn go_name(&self, text: &str, context: &GoType) -> Option<String> {
        let (package, name) = match text.split_once('.') {
            Some((import, name)) => (context.imports.get(import)?.as_str(), name),
            None => (context.package.as_str(), text),
        };
        let full = format!("{package}.{name}");
        let is_name = name.starts_with(char::is_uppercase);
        let last = package.rsplit('.').next().unwrap_or_default();
        (is_name && !self.structs.contains_key(&full)).then(|| format!("{last}.{name}"))
    }

    fn kind(&self, text: &str, context: &GoType, repeated: bool) -> String {
        match text.trim_start_matches('*') {
            "string" => "s".into(),
            "bool" => "b".into(),
            "int" | "int32" | "int64" | "uint32" | "uint64" | "uint8" | "int8" | "rune" => {
                "i".into()
            }
            "float32" | "float64" => "d".into(),
            "[]byte" => "y".into(),
            text => {
                if let Some(item) = text.strip_prefix("[]") {
                    return format!("[{}", self.kind(item, context, false));
                }
                if let Some(map) = text.strip_prefix("map[") {
                    let value = map.split_once(']').map_or("", |(_, value)| value);
                    return format!("{{{}", self.kind(value, context, false));
                }
                self.named(text, context, repeated)
            }
        }
    }

    fn named(&self, text: &str, context: &GoType, repeated: bool) -> String {
        let name = match text.split_once('.') {
            Some((import, name)) => {
                let package = context.imports.get(import).map_or("", String::as_str);
                format!("{package}.{name}")
            }
            None => format!("{}.{text}", context.package),
        };
        if self.structs.contains_key(&name) {
            return format!("m{name}");
        }
        match self.aliases.get(&name) {
            // A named list is wrapped in a message unless the field itself is repeated.
            Some(alias) if alias.text.starts_with("[]") && !repeated => "w".into(),
            Some(alias) => self.kind(&alias.text, alias, repeated),
            // Types outside the API modules are named strings: `types.UID`.
            None => "s".into(),
        }
    }
}

fn raw_field(member: Option<&str>, kind: GoType, tags: &str) -> anyhow::Result<Option<RawField>> {
    let tag = |name: &str| -> Option<String> {
        let start = tags.find(&format!("{name}:\""))? + name.len() + 2;
        Some(tags[start..].split('"').next().unwrap_or_default().to_owned())
    };
    let protobuf = tag("protobuf").unwrap_or_default();
    let mut parts = protobuf.split(',');
    let Some(Ok(number)) = parts.nth(1).map(str::parse) else { return Ok(None) };
    let repeated = parts.next() == Some("rep");
    let json = tag("json").unwrap_or_else(|| member.unwrap_or_default().to_owned());
    let json_name = json.split(',').next().unwrap_or_default();
    let inline = json.contains(",inline") || (member.is_none() && json_name.is_empty());
    Ok(Some(RawField {
        number,
        json_name: if json_name.is_empty() { "-".into() } else { json_name.to_owned() },
        inline,
        omit_empty: json.contains(",omitempty"),
        repeated,
        kind,
    }))
}

/// Maps import names to package names in definitions: `io.k8s.api.core.v1`.
fn imports(source: &str) -> anyhow::Result<BTreeMap<String, String>> {
    let import = Regex::new(r#"^\s*(?:import )?(\w+)?\s*"(k8s\.io/[^"]+)"$"#)?;
    let mut imports = BTreeMap::new();
    for line in source.lines().take_while(|line| !line.starts_with("type ")) {
        if let Some(found) = import.captures(line) {
            let path = found[2].trim_start_matches("k8s.io/");
            let last = path.rsplit('/').next().unwrap_or_default();
            let name = found.get(1).map_or(last, |name| name.as_str());
            imports.insert(name.to_owned(), format!("io.k8s.{}", path.replace('/', ".")));
        }
    }
    Ok(imports)
}
