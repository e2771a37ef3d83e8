//! Gives every namespace its `default` ServiceAccount and its `kube-root-ca.crt` ConfigMap.
//!
//! Fidelity: same as upstream, including the repair of a deleted account or a changed CA bundle.

use jiff::Timestamp;
use serde_json::json;

use super::collections::{CONFIG_MAPS, NAMESPACES, SERVICE_ACCOUNTS};
use super::fields;
use super::world::{Action, Change, Controller, Interest, Key, Outcome, World};

const ROOT_CA: &str = "kube-root-ca.crt";
const ROOT_CA_DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the \
    kube-apiserver when using internal endpoints such as the internal service IP or \
    kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes \
    clusters.";

/// See the module.
#[derive(Debug)]
pub(crate) struct NamespaceAccounts {
    /// The CA bundle to publish, in PEM.
    pub(crate) root_ca: String,
}

impl Controller for NamespaceAccounts {
    fn name(&self) -> &'static str {
        "namespace-accounts"
    }

    fn interest(&self) -> Interest {
        Interest::Collections(vec![NAMESPACES, SERVICE_ACCOUNTS, CONFIG_MAPS])
    }

    fn concerned(&mut self, change: &Change, _world: &dyn World) -> Vec<Key> {
        if change.collection != NAMESPACES && change.old.is_none() {
            return Vec::new();
        }
        let object = change.object();
        let namespace = if change.collection == NAMESPACES {
            fields::name(object)
        } else {
            let guarded = if change.collection == CONFIG_MAPS { ROOT_CA } else { "default" };
            if fields::name(object) != guarded {
                return Vec::new();
            }
            fields::namespace(object)
        };
        vec![Key::new(NAMESPACES, "", namespace)]
    }

    fn reconcile(&mut self, key: &Key, world: &dyn World, _now: Timestamp) -> Outcome {
        let mut outcome = Outcome::nothing();
        if world.get(key).is_none_or(|namespace| fields::is_deleting(&namespace)) {
            return outcome;
        }
        let account = Key::new(SERVICE_ACCOUNTS, &key.name, "default");
        if world.get(&account).is_none() {
            outcome.push(Action::Create {
                collection: SERVICE_ACCOUNTS,
                object: json!({
                    "apiVersion": "v1",
                    "kind": "ServiceAccount",
                    "metadata": { "name": "default", "namespace": key.name },
                }),
            });
        }
        let data = json!({ "ca.crt": self.root_ca });
        let bundle = Key::new(CONFIG_MAPS, &key.name, ROOT_CA);
        match world.get(&bundle) {
            None => outcome.push(Action::Create {
                collection: CONFIG_MAPS,
                object: json!({
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {
                        "name": ROOT_CA,
                        "namespace": key.name,
                        "annotations": { "kubernetes.io/description": ROOT_CA_DESCRIPTION },
                    },
                    "data": data,
                }),
            }),
            Some(object) if object.get("data") != Some(&data) => {
                let mut object = (*object).clone();
                fields::set(&mut object, &["data"], data);
                outcome.push(Action::Update { key: bundle, subresource: "", object });
            }
            Some(_) => {}
        }
        outcome
    }
}
