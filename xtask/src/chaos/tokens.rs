//! The credentials of the operator: tokens of its service account, which can be revoked.
//!
//! Each token is bound to a Secret: when that is deleted, the server rejects the token.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::api::Api;
use super::world::{ACCOUNT, NAMESPACE};
use crate::kubeconfig::Endpoint;

/// Longer than any run.
const LIFETIME_SECONDS: u64 = 6 * 3600;
const PATIENCE: Duration = Duration::from_secs(60);
/// The real server caches accepted tokens for ten seconds, the embedded one does not.
const REVOCATION_TIMEOUT_REAL: Duration = Duration::from_secs(15);
const REVOCATION_TIMEOUT_EMBEDDED: Duration = Duration::from_secs(2);
const POLL_INTERVAL: Duration = Duration::from_millis(500);

pub(super) struct Tokens {
    endpoint: Endpoint,
    folder: PathBuf,
    count: u32,
    current: String,
    timeout: Duration,
    /// The number of tokens that were rejected after they were revoked.
    pub(super) refused: u32,
}

impl Tokens {
    /// Writes the operator's kubeconfig, which refers to the token's file, and the first token.
    pub(super) async fn start(
        endpoint: &Endpoint,
        folder: PathBuf,
        server: &str,
        is_real: bool,
    ) -> Result<Self> {
        let ca = folder.join("ca.crt");
        std::fs::write(&ca, endpoint.ca.as_deref().context("the server has no certificate")?)?;
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority": ca}}],
            "users": [{"name": "u", "user": {"tokenFile": folder.join("token")}}],
            "contexts": [{"name": "x", "context": {
                "cluster": "c", "user": "u", "namespace": NAMESPACE,
            }}],
            "current-context": "x",
        });
        std::fs::write(folder.join("operator.kubeconfig"), format!("{config:#}\n"))?;
        let (endpoint, current) = (endpoint.clone(), String::new());
        let timeout = if is_real { REVOCATION_TIMEOUT_REAL } else { REVOCATION_TIMEOUT_EMBEDDED };
        let mut tokens = Self { endpoint, folder, count: 0, current, timeout, refused: 0 };
        tokens.issue().await?;
        Ok(tokens)
    }

    /// Issues a new token to the operator; the old one stays valid.
    pub(super) async fn issue(&mut self) -> Result<()> {
        self.count += 1;
        let mut api = Api::new(&self.endpoint)?;
        let name = self.secret(self.count);
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}});
        let secrets = format!("/api/v1/namespaces/{NAMESPACE}/secrets");
        api.ensure(&secrets, &secret, PATIENCE).await?;
        let request = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {
                "expirationSeconds": LIFETIME_SECONDS,
                "boundObjectRef": {"apiVersion": "v1", "kind": "Secret", "name": name},
            },
        });
        let path = format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{ACCOUNT}/token");
        let (status, answer) =
            api.send("POST", &path, "application/json", Some(&request), PATIENCE).await?;
        let token = answer["status"]["token"].as_str();
        let token = token.with_context(|| format!("no token: {status} {answer}"))?;
        let partial = self.folder.join("token.partial");
        std::fs::write(&partial, token)?;
        std::fs::rename(&partial, self.folder.join("token"))?;
        token.clone_into(&mut self.current);
        Ok(())
    }

    /// Revokes a token by its number; returns when the server rejects it, or the timeout has
    /// passed.
    pub(super) async fn revoke(&mut self, number: u32, token: &str) -> Result<()> {
        let mut api = Api::new(&self.endpoint)?;
        let path = format!("/api/v1/namespaces/{NAMESPACE}/secrets/{}", self.secret(number));
        let (status, answer) =
            api.send("DELETE", &path, "application/json", None, PATIENCE).await?;
        ensure!(matches!(status, 200 | 202 | 404), "DELETE {path}: {status} {answer}");
        let endpoint = Endpoint { token: Some(token.to_owned()), ..self.endpoint.clone() };
        let mut api = Api::new(&endpoint)?;
        let deadline = tokio::time::Instant::now() + self.timeout;
        while tokio::time::Instant::now() < deadline {
            let answer = api.try_send("GET", "/api", "application/json", None).await;
            if answer.is_ok_and(|(status, _)| status == 401) {
                self.refused += 1;
                return Ok(());
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }

    /// The number of the current token, and the token.
    pub(super) fn current(&self) -> (u32, String) {
        (self.count, self.current.clone())
    }

    fn secret(&self, number: u32) -> String {
        format!("token-{number}")
    }
}
