//! A Helm chart of an operator: the same documents as for kubectl, with template values.
//!
//! Pure. The documents are created by the same functions, with unique placeholders instead of
//! names. The placeholders are then replaced by Helm expressions.

mod texts;

use kopf_core::{Handler, Settings};
use serde_json::{Value, json};

use super::{
    Options, deployment, extras, monitoring, pointed_definitions, rbac, rights_of, to_yaml,
};

/// The placeholders for Helm expressions.
const NAME: &str = "kopf-word-title";
const NAMESPACE: &str = "kopf-word-namespace";
const WATCHED: &str = "kopf-word-watched";
const IMAGE: &str = "kopf-word-image";

/// One file of a chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChartFile {
    /// Its path in the folder of the chart.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// The files of the chart.
///
/// # Errors
/// Fails only if a value cannot be written as YAML, which never happens for JSON trees.
pub fn files(
    handlers: &[Handler],
    settings: &Settings,
    options: &Options,
) -> Result<Vec<ChartFile>, serde_norway::Error> {
    let with_placeholders = with_placeholders(options);
    let has_webhooks = handlers.iter().any(|it| it.kind.family().is_asked());
    let chart = Chart { name: &options.name };
    let mut files = vec![
        file("Chart.yaml", to_yaml(&[texts::chart(&options.name)])?),
        file("values.yaml", texts::values(options)),
        file("values.schema.json", texts::schema()),
        file(".helmignore", "*.new\n.git/\n".to_owned()),
        file("templates/_helpers.tpl", texts::helpers(&options.name)),
        file("templates/NOTES.txt", texts::notes(&options.name)),
        file("templates/rbac.yaml", chart.rights(handlers, settings, &with_placeholders)?),
        file("templates/deployment.yaml", chart.deployment(&with_placeholders, has_webhooks)?),
        file("templates/tests/describe.yaml", chart.filled(texts::TEST)),
    ];
    let definitions = pointed_definitions(handlers, &with_placeholders);
    if !definitions.is_empty() {
        files.push(file("templates/crds.yaml", chart.definitions(&definitions)?));
    }
    let optional = [
        ("metrics", "metrics.enabled", extras::metrics_service(&with_placeholders)),
        (
            "servicemonitor",
            "metrics.serviceMonitor.enabled",
            extras::service_monitor(&with_placeholders),
        ),
        (
            "networkpolicy",
            "networkPolicy.enabled",
            network_policy(&with_placeholders, has_webhooks),
        ),
        (
            "poddisruptionbudget",
            "podDisruptionBudget.enabled",
            extras::disruption_budget(&with_placeholders),
        ),
        ("alerts", "metrics.alerts.enabled", monitoring::rules(handlers, &with_placeholders)),
        (
            "dashboard",
            "metrics.dashboard.enabled",
            extras::dashboard_map(handlers, &with_placeholders),
        ),
    ];
    for (name, value, document) in optional {
        let text = with_value(&chart.yaml(&[document])?, texts::PEERS.0, texts::PEERS.1);
        let text = format!("{{{{- if .Values.{value} }}}}\n{text}{{{{- end }}}}\n");
        files.push(file(&format!("templates/{name}.yaml"), text));
    }
    Ok(files)
}

/// The network policy with a placeholder for the peers that may read the metrics.
fn network_policy(options: &Options, has_webhooks: bool) -> Value {
    let mut policy = extras::network_policy(options, has_webhooks);
    policy["spec"]["ingress"][0]["from"] = json!(texts::PEERS.0);
    policy
}

/// The same operator with placeholders.
fn with_placeholders(options: &Options) -> Options {
    Options {
        name: NAME.to_owned(),
        namespace: NAMESPACE.to_owned(),
        image: IMAGE.to_owned(),
        serves: None,
        ..options.clone()
    }
}

fn file(path: &str, text: String) -> ChartFile {
    ChartFile { path: path.to_owned(), text }
}

struct Chart<'a> {
    name: &'a str,
}

impl Chart<'_> {
    /// Documents with Helm expressions instead of placeholders; other braces are escaped.
    fn yaml(&self, documents: &[Value]) -> Result<String, serde_norway::Error> {
        let text = to_yaml(documents)?;
        // Existing braces, such as those in alerts, are not for Helm.
        let text = text.replace("{{", "\u{1}").replace("}}", "\u{2}");
        let text = text.replace('\u{1}', "{{ \"{{\" }}").replace('\u{2}', "{{ \"}}\" }}");
        Ok(self.filled(&text))
    }

    fn filled(&self, text: &str) -> String {
        text.replace(NAME, &format!("{{{{ include \"{}.name\" $ }}}}", self.name))
            .replace(NAMESPACE, "{{ $.Release.Namespace }}")
            .replace(WATCHED, "{{ $watched }}")
            .replace(IMAGE, "{{ $.Values.image.repository }}:{{ $.Values.image.tag | default $.Chart.AppVersion }}")
    }

    fn definitions(&self, definitions: &[Value]) -> Result<String, serde_norway::Error> {
        let mut definitions = definitions.to_vec();
        for definition in &mut definitions {
            definition["metadata"]["annotations"][texts::KEEP.0] = json!("");
        }
        let text = with_value(&self.yaml(&definitions)?, texts::KEEP.0, texts::KEEP.1);
        Ok(format!("{{{{- if .Values.crds.install }}}}\n{text}{{{{- end }}}}\n"))
    }

    /// Rights for the whole cluster, or in each of the namespaces in the values.
    fn rights(
        &self,
        handlers: &[Handler],
        settings: &Settings,
        options: &Options,
    ) -> Result<String, serde_norway::Error> {
        let is_account = |document: &&Value| document["kind"] == "ServiceAccount";
        let everywhere = rbac::documents(&rights_of(handlers, settings, options), options);
        let (account, everywhere): (Vec<_>, Vec<_>) =
            everywhere.into_iter().partition(|it| is_account(&it));
        let narrow = Options { serves: Some(vec![WATCHED.to_owned()]), ..options.clone() };
        let narrow = rbac::documents(&rights_of(handlers, settings, &narrow), &narrow);
        let narrow = narrow.into_iter().filter(|it| !is_account(&it));
        // The others are cluster-wide, or in the operator's own namespace.
        let is_inside = |document: &Value| document["metadata"]["namespace"] == WATCHED;
        let (inside, once): (Vec<_>, Vec<_>) = narrow.partition(is_inside);
        let account = self.yaml(&account)?;
        let account = account.trim_end();
        Ok(format!(
            "{account}\n  {{{{- with .Values.serviceAccount.annotations }}}}\n  annotations:\n    \
             {{{{- toYaml . | nindent 4 }}}}\n  {{{{- end }}}}\n{{{{- if .Values.rbac.create }}}}\n\
             {{{{- if .Values.namespaces }}}}\n{}{{{{- range $watched := .Values.namespaces }}}}\n---\n{}\
             {{{{- end }}}}\n{{{{- else }}}}\n---\n{}{{{{- end }}}}\n{{{{- end }}}}\n",
            if once.is_empty() { String::new() } else { format!("---\n{}", self.yaml(&once)?) },
            self.yaml(&inside)?,
            self.yaml(&everywhere)?,
        ))
    }

    fn deployment(
        &self,
        options: &Options,
        has_webhooks: bool,
    ) -> Result<String, serde_norway::Error> {
        let mut documents = deployment::documents(options, has_webhooks);
        // The chart has a separate option for it.
        documents.retain(|document| document["kind"] != "PodDisruptionBudget");
        let spec = &mut documents[0]["spec"];
        spec["replicas"] = json!(texts::REPLICAS.0);
        let pod = &mut spec["template"]["spec"];
        pod[texts::POD.0] = json!("");
        let container = &mut pod["containers"][0];
        container["resources"] = json!(texts::RESOURCES.0);
        container["imagePullPolicy"] = json!(texts::PULL_POLICY.0);
        let mut environment = container["env"].as_array().cloned().unwrap_or_default();
        environment.push(json!(texts::ENVIRONMENT.0));
        container["env"] = json!(environment);
        if let Some(arguments) = container["args"].as_array_mut() {
            arguments.retain(|argument| argument != "--all-namespaces");
            arguments.push(json!(texts::ARGUMENTS.0));
        }
        let mut text = self.yaml(&documents)?;
        let values = [
            texts::REPLICAS,
            texts::POD,
            texts::RESOURCES,
            texts::PULL_POLICY,
            texts::ENVIRONMENT,
            texts::ARGUMENTS,
        ];
        for (word, value) in values {
            text = with_value(&text, word, value);
        }
        Ok(text)
    }
}

/// Replaces the line of a placeholder with a value of the chart, at the same indentation.
fn with_value(text: &str, word: &str, value: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        if line.contains(word) {
            let indent = line.len() - line.trim_start().len();
            let value = value.replace("INDENT", &(indent + 2).to_string());
            let value = value.replace("LEVEL", &indent.to_string());
            out += &value.replace("SPACE", &" ".repeat(indent));
        } else {
            out += line;
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests;
