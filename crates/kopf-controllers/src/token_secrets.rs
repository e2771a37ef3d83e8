//! Fills Secrets of the type `kubernetes.io/service-account-token`, and deletes those whose account
//! is gone.
//!
//! Fidelity: same data, annotation and claims as upstream's token controller. Not there: the label
//! that says when such a token was last used, and the removal of tokens that nobody uses.

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::collections::{SECRETS, SERVICE_ACCOUNTS};
use super::fields::{self, text};
use super::world::{Action, Change, Controller, Interest, Key, Outcome, World};

const TOKEN_TYPE: &str = "kubernetes.io/service-account-token";
const ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";
const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";
const ISSUER: &str = "kubernetes/serviceaccount";

/// Signs claims.
pub type Sign = Arc<dyn Fn(&Value) -> String + Send + Sync>;

/// See the module.
pub(crate) struct TokenSecrets {
    /// The CA bundle that goes into each Secret, in PEM.
    pub(crate) root_ca: String,
    pub(crate) sign: Sign,
}

impl fmt::Debug for TokenSecrets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("TokenSecrets")
    }
}

impl Controller for TokenSecrets {
    fn name(&self) -> &'static str {
        "token-secrets"
    }

    fn interest(&self) -> Interest {
        Interest::Collections(vec![SECRETS, SERVICE_ACCOUNTS])
    }

    fn concerned(&mut self, change: &Change, world: &dyn World) -> Vec<Key> {
        let object = change.object();
        if change.collection == SECRETS {
            let is_token = !change.is_removal() && object["type"] == TOKEN_TYPE;
            return is_token.then(|| Key::of(SECRETS, object)).into_iter().collect();
        }
        let account = fields::name(object);
        let secrets = world.list(&SECRETS, Some(fields::namespace(object)));
        let belongs = |secret: &Value| {
            secret["type"] == TOKEN_TYPE && annotation(secret, ACCOUNT_NAME) == account
        };
        let keys = secrets.iter().filter(|secret| belongs(secret));
        keys.map(|secret| Key::of(SECRETS, secret)).collect()
    }

    fn reconcile(&mut self, key: &Key, world: &dyn World, _now: Timestamp) -> Outcome {
        let mut outcome = Outcome::nothing();
        let Some(secret) = world.get(key) else { return outcome };
        if secret["type"] != TOKEN_TYPE || fields::is_deleting(&secret) {
            return outcome;
        }
        let name = annotation(&secret, ACCOUNT_NAME);
        let account = world.get(&Key::new(SERVICE_ACCOUNTS, &key.namespace, name));
        let uid = annotation(&secret, ACCOUNT_UID);
        match account.filter(|account| uid.is_empty() || fields::uid(account) == uid) {
            Some(account) => self.fill(key, &secret, &account, &mut outcome),
            None => outcome.push(Action::Delete {
                key: key.clone(),
                uid: fields::uid(&secret).to_owned(),
                propagation: None,
                grace_seconds: None,
            }),
        }
        outcome
    }
}

impl TokenSecrets {
    fn fill(&self, key: &Key, secret: &Value, account: &Value, outcome: &mut Outcome) {
        let mut data = json!({});
        let encode = |text: &str| STANDARD.encode(text);
        if secret["data"]["ca.crt"] != encode(&self.root_ca).as_str() {
            data["ca.crt"] = encode(&self.root_ca).into();
        }
        if secret["data"]["namespace"] != encode(&key.namespace).as_str() {
            data["namespace"] = encode(&key.namespace).into();
        }
        if text(secret, &["data", "token"]).is_empty() {
            data["token"] = encode(&(self.sign)(&claims(key, account))).into();
        }
        let has_uid = annotation(secret, ACCOUNT_UID) == fields::uid(account);
        if has_uid && data == json!({}) {
            return;
        }
        let version = text(secret, &["metadata", "resourceVersion"]);
        let annotations = json!({ ACCOUNT_UID: fields::uid(account) });
        outcome.push(Action::Patch {
            key: key.clone(),
            subresource: "",
            patch: json!({
                "metadata": { "resourceVersion": version, "annotations": annotations },
                "data": data,
            }),
        });
    }
}

fn annotation<'a>(object: &'a Value, name: &str) -> &'a str {
    text(object, &["metadata", "annotations", name])
}

/// The claims of a token that does not expire.
fn claims(key: &Key, account: &Value) -> Value {
    let (namespace, name) = (&key.namespace, fields::name(account));
    json!({
        "iss": ISSUER,
        "kubernetes.io/serviceaccount/namespace": namespace,
        "kubernetes.io/serviceaccount/secret.name": key.name,
        "kubernetes.io/serviceaccount/service-account.name": name,
        "kubernetes.io/serviceaccount/service-account.uid": fields::uid(account),
        "sub": format!("system:serviceaccount:{namespace}:{name}"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::test_world::{TestWorld, describe, react};
    use super::*;

    fn controller() -> TokenSecrets {
        TokenSecrets { root_ca: "ca".into(), sign: Arc::new(|claims| claims["sub"].to_string()) }
    }

    fn secret(uid: &str) -> Value {
        json!({"metadata": {"name": "t", "namespace": "n", "uid": "s",
            "annotations": {ACCOUNT_NAME: "a", ACCOUNT_UID: uid}}, "type": TOKEN_TYPE})
    }

    #[test]
    fn a_secret_of_an_account_is_filled() {
        let mut world = TestWorld::default();
        world.put(
            &SERVICE_ACCOUNTS,
            json!({"metadata": {"name": "a", "namespace": "n", "uid": "u"}}),
        );
        let change = world.put(&SECRETS, secret(""));
        let found = describe(&react(&mut controller(), &change, &world));
        let token = STANDARD.encode("\"system:serviceaccount:n:a\"");
        assert!(found[0].contains(&token), "{found:?}");
        assert!(found[0].contains("\"kubernetes.io/service-account.uid\":\"u\""), "{found:?}");
    }

    #[test]
    fn a_secret_of_another_account_is_deleted() {
        let mut world = TestWorld::default();
        world.put(
            &SERVICE_ACCOUNTS,
            json!({"metadata": {"name": "a", "namespace": "n", "uid": "u"}}),
        );
        let change = world.put(&SECRETS, secret("before"));
        let found = describe(&react(&mut controller(), &change, &world));
        assert!(found[0].starts_with("delete"), "{found:?}");
    }
}
