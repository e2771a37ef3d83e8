//! Reads and writes the part of a kubeconfig that our tools need.
//!
//! Resolves a file to an `Endpoint`: URL, trust, credentials. Supports only the current context;
//! rejects exec plugins.

use std::path::Path;

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use serde_json::{Value, json};

/// The address of an API server and the credentials for it.
#[derive(Clone, Default)]
pub struct Endpoint {
    /// The URL.
    pub server: String,
    /// The CA to trust, as PEM.
    pub ca: Option<Vec<u8>>,
    /// The bearer token.
    pub token: Option<String>,
    /// The certificate and its key, as PEM.
    pub client_certificate: Option<(Vec<u8>, Vec<u8>)>,
}

impl Endpoint {
    /// Resolves the current context of a kubeconfig file.
    pub fn from_file(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("could not read `{}`", path.display()))?;
        let folder = path.parent().unwrap_or(Path::new("."));
        Self::from_text(&text, folder).with_context(|| format!("in `{}`", path.display()))
    }

    fn from_text(text: &str, folder: &Path) -> Result<Self> {
        let config: Value = serde_norway::from_str(text).context("not a kubeconfig")?;
        let current = config["current-context"].as_str().unwrap_or_default();
        let context = &named(&config["contexts"], current)?["context"];
        let cluster = &named(&config["clusters"], context["cluster"].as_str().unwrap_or_default())?
            ["cluster"];
        let user = match context["user"].as_str() {
            Some(name) => named(&config["users"], name)?["user"].clone(),
            None => Value::Null,
        };
        if user.get("exec").is_some() {
            bail!("credential plugins are not supported");
        }
        let certificate = material(&user, "client-certificate", folder)?;
        let key = material(&user, "client-key", folder)?;
        Ok(Self {
            server: cluster["server"].as_str().context("no server")?.trim_end_matches('/').into(),
            ca: material(cluster, "certificate-authority", folder)?,
            token: user["token"].as_str().map(str::to_owned),
            client_certificate: certificate.zip(key),
        })
    }
}

/// A kubeconfig with one cluster, one user with a token, one context.
pub fn render(server: &str, ca_file: &str, token: &str) -> String {
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "kopf", "cluster": {
            "server": server, "certificate-authority": ca_file,
        }}],
        "users": [{"name": "admin", "user": {"token": token}}],
        "contexts": [{"name": "kopf", "context": {"cluster": "kopf", "user": "admin"}}],
        "current-context": "kopf",
    });
    // JSON is YAML, so kubectl can read it.
    format!("{config:#}\n")
}

fn named<'a>(list: &'a Value, name: &str) -> Result<&'a Value> {
    let entries = list.as_array().map(Vec::as_slice).unwrap_or_default();
    entries
        .iter()
        .find(|entry| entry["name"] == name)
        .with_context(|| format!("no entry named `{name}`"))
}

/// `<field>-data` as base64, or else the file that `<field>` names.
fn material(entry: &Value, field: &str, folder: &Path) -> Result<Option<Vec<u8>>> {
    if let Some(data) = entry[format!("{field}-data")].as_str() {
        return Ok(Some(base64::engine::general_purpose::STANDARD.decode(data)?));
    }
    let Some(path) = entry[field].as_str() else { return Ok(None) };
    let path = folder.join(path);
    let bytes =
        std::fs::read(&path).with_context(|| format!("could not read `{}`", path.display()))?;
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_current_context_decides() {
        let text = "
current-context: b
contexts:
- {name: a, context: {cluster: x, user: u}}
- {name: b, context: {cluster: y, user: u}}
clusters:
- {name: x, cluster: {server: 'https://x'}}
- {name: y, cluster: {server: 'https://y/', certificate-authority-data: Y2E=}}
users:
- {name: u, user: {token: secret}}
";
        let endpoint = Endpoint::from_text(text, Path::new(".")).unwrap();
        assert_eq!(endpoint.server, "https://y");
        assert_eq!(endpoint.ca.as_deref(), Some(b"ca".as_slice()));
        assert_eq!(endpoint.token.as_deref(), Some("secret"));
    }

    #[test]
    fn what_we_render_we_can_read() {
        let folder = std::env::temp_dir();
        let text = render("https://127.0.0.1:1", "/dev/null", "t");
        assert_eq!(Endpoint::from_text(&text, &folder).unwrap().token.as_deref(), Some("t"));
    }
}
