//! Seeded random sequences: the same seed gives the same script.
//!
//! Pure. Defines the mix of operations; `kinds` defines objects of each kind, `schema` custom
//! resources. Only kinds without a controller are used, since the timing of controllers varies.

mod kinds;
mod schema;

use fastrand::Rng;
use serde_json::{Map, Value, json};

use super::script::{Content, Script, Step, Wait};
use kinds::Kind;

const NAMES: [&str; 3] = ["a", "b", "c"];
const MANAGERS: [&str; 3] = ["m1", "m2", "m3"];
const FINALIZERS: [&str; 2] = ["kopf.dev/one", "kopf.dev/two"];
const SELECTORS: [&str; 8] = [
    "labelSelector=tier%3Dx",
    "labelSelector=tier%21%3Dx",
    "labelSelector=tier%20in%20%28x%2Cy%29%2Cenv",
    "labelSelector=tier%20notin%20%28x%29",
    "labelSelector=%21tier",
    "fieldSelector=metadata.name%3Da",
    "fieldSelector=metadata.name%21%3Da%2Cmetadata.namespace%3D${ns}",
    "labelSelector=tier%3D%3D%3Dx",
];

/// A sequence of `count` random steps between a fixed beginning and end.
pub(crate) fn script(seed: u64, count: usize) -> Script {
    let mut rng = Rng::with_seed(seed);
    let (kind, mut steps) = kinds::choose(&mut rng, seed);
    let name = format!("random-{seed}-{}", kind.plural);
    let list = kind.path.clone();
    steps.push(Step::new("GET", list.as_str()).saving("start", "/metadata/resourceVersion"));
    let mut sequence = Sequence { rng, kind, steps, is_present: [false; NAMES.len()] };
    for _ in 0..count {
        sequence.add();
    }
    let mut steps = sequence.steps;
    steps.push(Step::new("GET", list.as_str()));
    for tail in ["", "&labelSelector=tier%3Dx"] {
        let path = format!("{list}?resourceVersion=${{start}}&timeoutSeconds=1{tail}");
        steps.push(Step::new("WATCH", path));
    }
    Script { name, about: String::new(), steps }
}

struct Sequence {
    rng: Rng,
    kind: Kind,
    steps: Vec<Step>,
    /// A guess of which names exist, so that most steps find an object.
    is_present: [bool; NAMES.len()],
}

impl Sequence {
    fn add(&mut self) {
        let index = self.rng.usize(..NAMES.len());
        let name = NAMES[index];
        if !self.is_present[index] && self.rng.u32(0..10) < 7 {
            self.is_present[index] = true;
            return if self.rng.u32(0..4) == 0 { self.apply(name) } else { self.create(name) };
        }
        match self.rng.u32(0..100) {
            0..4 => self.create(name),
            4..16 => self.put(name),
            16..32 => self.merge(name),
            32..42 => self.json_patch(name),
            42..54 => self.strategic(name),
            54..72 => self.apply(name),
            72..78 => self.status(name),
            78..88 => {
                self.is_present[index] = false;
                self.delete(name);
            }
            _ => self.read(name),
        }
    }

    fn create(&mut self, name: &str) {
        let body = self.object(name);
        let query = self.pick(&["", "", "", "?dryRun=All", "?fieldValidation=Strict"]);
        let step = Step::new("POST", format!("{}{query}", self.kind.path)).with_body(body);
        self.push(step, name);
    }

    fn put(&mut self, name: &str) {
        let mut body = self.object(name);
        match self.rng.u32(0..5) {
            0 => {}
            1 => body["metadata"]["resourceVersion"] = json!("1"),
            2 => body["metadata"]["uid"] = json!(format!("${{uid-{name}}}")),
            _ => body["metadata"]["resourceVersion"] = json!(format!("${{rv-{name}}}")),
        }
        let step = Step::new("PUT", self.item(name)).with_body(body);
        self.push(step, name);
    }

    fn merge(&mut self, name: &str) {
        let mut patch = self.metadata_patch();
        if self.rng.bool() {
            let content = self.kind.partial(&mut self.rng);
            patch.extend(content.as_object().cloned().unwrap_or_default());
        }
        self.push(Step::patch(Content::Merge, self.item(name), Value::Object(patch)), name);
    }

    fn json_patch(&mut self, name: &str) {
        let count = self.rng.usize(1..3);
        let operations: Value = (0..count).map(|_| self.json_operation()).collect();
        self.push(Step::patch(Content::Json, self.item(name), operations), name);
    }

    fn json_operation(&mut self) -> Value {
        let path = self.pick(&[
            "/metadata/labels",
            "/metadata/labels/tier",
            "/metadata/annotations",
            "/metadata/annotations/note",
            "/metadata/finalizers/0",
            "/metadata/none/x",
        ]);
        let value = match path {
            "/metadata/labels" | "/metadata/annotations" => json!({"tier": "y"}),
            _ => json!(self.pick(&["x", "y", "z"])),
        };
        match self.rng.u32(0..5) {
            0 => json!({"op": "remove", "path": path}),
            1 => json!({"op": "replace", "path": path, "value": value}),
            2 => json!({"op": "test", "path": path, "value": value}),
            _ => json!({"op": "add", "path": path, "value": value}),
        }
    }

    fn strategic(&mut self, name: &str) {
        let mut patch = self.metadata_patch();
        let content = self.kind.strategic(&mut self.rng);
        patch.extend(content.as_object().cloned().unwrap_or_default());
        self.push(Step::patch(Content::Strategic, self.item(name), Value::Object(patch)), name);
    }

    fn apply(&mut self, name: &str) {
        let mut body = self.kind.partial(&mut self.rng);
        body["apiVersion"] = json!(self.kind.api_version);
        body["kind"] = json!(self.kind.kind);
        body["metadata"] = json!({"name": name});
        if self.rng.bool() {
            body["metadata"]["labels"] = self.labels();
        }
        if self.rng.u32(0..6) == 0 {
            body["metadata"]["finalizers"] = json!([self.pick(&FINALIZERS)]);
        }
        let manager = self.pick(&MANAGERS);
        let force = if self.rng.bool() { "&force=true" } else { "" };
        let path = format!("{}?fieldManager={manager}{force}", self.item(name));
        self.push(Step::patch(Content::Apply, path, body), name);
    }

    fn status(&mut self, name: &str) {
        let status = self.kind.status(&mut self.rng);
        let path = format!("{}/status", self.item(name));
        self.push(Step::patch(Content::Merge, path, json!({ "status": status })), name);
    }

    fn delete(&mut self, name: &str) {
        let mut options = Map::new();
        let is_collected = !self.kind.is_custom();
        match self.rng.u32(0..8) {
            0 => options.insert("preconditions".into(), json!({"uid": format!("${{uid-{name}}}")})),
            1 => options.insert(
                "preconditions".into(),
                json!({"resourceVersion": format!("${{rv-{name}}}")}),
            ),
            2 => options.insert("dryRun".into(), json!(["All"])),
            3 => options.insert("propagationPolicy".into(), json!("Background")),
            // The garbage collector notices new kinds only after half a minute.
            4 if is_collected => options.insert("propagationPolicy".into(), json!("Foreground")),
            5 if is_collected => options.insert("propagationPolicy".into(), json!("Orphan")),
            _ => None,
        };
        let is_asynchronous = options.contains_key("propagationPolicy");
        let mut step = Step::new("DELETE", self.item(name));
        if !options.is_empty() {
            step = step.with_body(Value::Object(options));
        }
        self.steps.push(step);
        if is_asynchronous {
            // The garbage collector removes its own finalizers at some later time.
            let lacks = ["\"foregroundDeletion\"", "\"orphan\""].map(str::to_owned).to_vec();
            let settled = Wait { lacks, ..Wait::default() };
            self.push(Step::new("GET", self.item(name)).waiting(settled), name);
        }
    }

    fn read(&mut self, name: &str) {
        let path = self.kind.path.clone();
        let step = match self.rng.u32(0..6) {
            0 => Step::new("GET", self.item(name)),
            1 => Step::new("GET", format!("{path}?limit=1")).saving("next", "/metadata/continue"),
            2 => Step::new("GET", format!("{path}?limit=1&continue=${{next}}"))
                .saving("next", "/metadata/continue"),
            3 => {
                let mut step = Step::new("GET", path.as_str());
                let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
                step.headers.insert("Accept".into(), table.into());
                step
            }
            _ => {
                let selector = self.pick(&SELECTORS);
                Step::new("GET", format!("{path}?{selector}"))
            }
        };
        self.steps.push(step);
    }

    fn object(&mut self, name: &str) -> Value {
        let mut body = self.kind.whole(&mut self.rng);
        body["apiVersion"] = json!(self.kind.api_version);
        body["kind"] = json!(self.kind.kind);
        body["metadata"] = json!({"name": name});
        if self.rng.bool() {
            body["metadata"]["labels"] = self.labels();
        }
        if self.rng.u32(0..4) == 0 {
            body["metadata"]["finalizers"] = json!([self.pick(&FINALIZERS)]);
        }
        body
    }

    fn metadata_patch(&mut self) -> Map<String, Value> {
        let metadata = match self.rng.u32(0..7) {
            0 => json!({"labels": self.labels()}),
            1 => json!({"labels": {"tier": null}}),
            2 => json!({"annotations": {"note": self.pick(&["1", "2"])}}),
            3 => json!({"finalizers": [self.pick(&FINALIZERS)]}),
            4 => json!({"finalizers": null}),
            5 => json!({"resourceVersion": "1"}),
            _ => return Map::new(),
        };
        Map::from_iter([("metadata".to_owned(), metadata)])
    }

    fn labels(&mut self) -> Value {
        match self.rng.u32(0..4) {
            0 => json!({"tier": self.pick(&["x", "y"]), "env": "e"}),
            1 => json!({"env": self.pick(&["e", "f"])}),
            _ => json!({"tier": self.pick(&["x", "y"])}),
        }
    }

    fn item(&self, name: &str) -> String {
        format!("{}/{name}", self.kind.path)
    }

    /// Adds a step and saves the identity in its response.
    fn push(&mut self, step: Step, name: &str) {
        self.steps.push(
            step.saving(&format!("rv-{name}"), "/metadata/resourceVersion")
                .saving(&format!("uid-{name}"), "/metadata/uid"),
        );
    }

    fn pick(&mut self, choices: &[&'static str]) -> &'static str {
        choices[self.rng.usize(..choices.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_sequence() {
        let text = |seed| serde_json::to_string(&script(seed, 30)).unwrap();
        assert_eq!(text(7), text(7));
        assert_ne!(text(7), text(8));
    }

    #[test]
    fn every_kind_comes_up() {
        let names: std::collections::BTreeSet<String> =
            (0..60).map(|seed| script(seed, 1).name).collect();
        for plural in ["configmaps", "secrets", "podtemplates", "services", "widgets"] {
            assert!(names.iter().any(|name| name.ends_with(plural)), "{plural}");
        }
    }
}
