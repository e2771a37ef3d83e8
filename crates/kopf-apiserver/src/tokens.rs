//! Service account tokens: signed and self-contained.
//!
//! The format is a JWT with HMAC-SHA256. Clients treat tokens as opaque; only this server verifies
//! them. `authn` decides whether claims are still valid.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use serde_json::{Value, json};

/// The issuer of tokens, and their audience unless they name another.
pub(crate) const AUDIENCE: &str = "https://kubernetes.default.svc";

/// Signs and verifies tokens.
#[derive(Clone)]
pub(crate) struct TokenIssuer {
    key: [u8; 32],
}

impl TokenIssuer {
    /// Creates an issuer with a random key.
    pub(crate) fn random() -> Self {
        let mut key = [0; 32];
        rustls::crypto::ring::default_provider()
            .secure_random
            .fill(&mut key)
            .expect("the system has random bytes");
        Self { key }
    }

    /// The key in text form, for storage.
    pub(crate) fn key_text(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.key)
    }

    /// Creates an issuer with a stored key.
    pub(crate) fn from_key_text(text: &str) -> Option<Self> {
        let key = URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok()?;
        Some(Self { key })
    }

    /// Signs claims.
    pub(crate) fn sign(&self, claims: &Value) -> String {
        let header = json!({"alg": "HS256", "typ": "JWT"});
        let body = format!(
            "{}.{}",
            URL_SAFE_NO_PAD.encode(header.to_string()),
            URL_SAFE_NO_PAD.encode(claims.to_string())
        );
        let signature = URL_SAFE_NO_PAD.encode(hmac::sign(&self.signing_key(), body.as_bytes()));
        format!("{body}.{signature}")
    }

    /// The claims of a token that this issuer signed.
    pub(crate) fn verify(&self, token: &str) -> Option<Value> {
        let (body, signature) = token.rsplit_once('.')?;
        let given = URL_SAFE_NO_PAD.decode(signature).ok()?;
        // Constant-time comparison.
        hmac::verify(&self.signing_key(), body.as_bytes(), &given).ok()?;
        let claims = URL_SAFE_NO_PAD.decode(body.split_once('.')?.1).ok()?;
        serde_json::from_slice(&claims).ok()
    }

    fn signing_key(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &self.key)
    }
}
