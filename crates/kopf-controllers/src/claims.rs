//! Binds PersistentVolumeClaims: to a matching volume, or to one provisioned by their class.
//!
//! Fidelity: static matching by class, size and access modes; provisioning by any StorageClass,
//! including the default one; WaitForFirstConsumer; protection finalizers; Retain and Delete. There
//! is no actual storage: provisioned volumes are host paths that do not exist.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::collections::{CLAIMS, PODS, STORAGE_CLASSES, VOLUMES};
use super::fields::{self, at, items, text, texts};
use super::pod_state;
use super::world::{Action, Change, Controller, Interest, Key, Outcome, Propagation, Seen, World};

/// Finalizer that keeps a claim while a pod uses it.
const CLAIM_PROTECTION: &str = "kubernetes.io/pvc-protection";
/// Finalizer that keeps a volume while a claim uses it.
const VOLUME_PROTECTION: &str = "kubernetes.io/pv-protection";

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Claims;

impl Controller for Claims {
    fn name(&self) -> &'static str {
        "persistent-volume-claims"
    }

    fn interest(&self) -> Interest {
        Interest::Collections(vec![CLAIMS, VOLUMES, STORAGE_CLASSES, PODS])
    }

    fn concerned(&mut self, change: &Change, world: &dyn World) -> Vec<Key> {
        let object = change.object();
        if change.collection == CLAIMS {
            let mut keys = vec![Key::of(CLAIMS, object)];
            let volume = text(object, &["spec", "volumeName"]);
            if !volume.is_empty() {
                keys.push(Key::new(VOLUMES, "", volume));
            }
            return keys;
        }
        if change.collection == PODS {
            return claims_of(object)
                .map(|claim| Key::new(CLAIMS, fields::namespace(object), claim))
                .collect();
        }
        let pending = world.list(&CLAIMS, None);
        let mut keys: Vec<Key> = pending
            .iter()
            .filter(|claim| text(claim, &["status", "phase"]) != "Bound")
            .map(|claim| Key::of(CLAIMS, claim))
            .collect();
        if change.collection == VOLUMES {
            keys.push(Key::of(VOLUMES, object));
        }
        keys
    }

    fn reconcile(&mut self, key: &Key, world: &dyn World, _now: Timestamp) -> Outcome {
        let mut outcome = Outcome::nothing();
        let Some(object) = world.get(key) else { return outcome };
        if key.collection == VOLUMES {
            update_volume(key, &object, world, &mut outcome);
        } else if fields::is_deleting(&object) {
            release_claim(key, &object, world, &mut outcome);
        } else {
            protect_claim(key, &object, &mut outcome);
            bind(key, &object, world, &mut outcome);
        }
        outcome
    }
}

fn claims_of(pod: &Value) -> impl Iterator<Item = &str> {
    items(pod, &["spec", "volumes"])
        .iter()
        .map(|volume| text(volume, &["persistentVolumeClaim", "claimName"]))
        .filter(|claim| !claim.is_empty())
}

fn is_used(claim: &Key, world: &dyn World) -> bool {
    world
        .list(&PODS, Some(&claim.namespace))
        .iter()
        .any(|pod| !pod_state::is_finished(pod) && claims_of(pod).any(|name| name == claim.name))
}

/// Adds the finalizer of a claim that has lost it.
fn protect_claim(key: &Key, claim: &Value, outcome: &mut Outcome) {
    let mut finalizers = fields::finalizers(claim);
    if !finalizers.contains(&CLAIM_PROTECTION) {
        finalizers.push(CLAIM_PROTECTION);
        let version = text(claim, &["metadata", "resourceVersion"]);
        outcome.push(Action::Patch {
            key: key.clone(),
            subresource: "",
            patch: json!({ "metadata": { "finalizers": finalizers, "resourceVersion": version } }),
        });
    }
}

/// Releases a deleted claim once no pod uses it.
fn release_claim(key: &Key, claim: &Value, world: &dyn World, outcome: &mut Outcome) {
    if !is_used(key, world) {
        drop_finalizer(key, claim, CLAIM_PROTECTION, outcome);
    }
}

fn drop_finalizer(key: &Key, object: &Value, finalizer: &str, outcome: &mut Outcome) {
    let finalizers = fields::finalizers(object);
    if finalizers.contains(&finalizer) {
        let kept: Vec<&str> = finalizers.into_iter().filter(|other| *other != finalizer).collect();
        let version = text(object, &["metadata", "resourceVersion"]);
        outcome.push(Action::Patch {
            key: key.clone(),
            subresource: "",
            patch: json!({ "metadata": { "finalizers": kept, "resourceVersion": version } }),
        });
    }
}

fn bind(key: &Key, claim: &Value, world: &dyn World, outcome: &mut Outcome) {
    let named = text(claim, &["spec", "volumeName"]);
    let volume = if named.is_empty() {
        world.list(&VOLUMES, None).into_iter().filter(|volume| fits(volume, claim)).min_by_key(
            |volume| {
                (
                    !is_reserved_for(volume, claim),
                    capacity_of(volume),
                    fields::name(volume).to_owned(),
                )
            },
        )
    } else {
        // A volume that another claim has, or that is kept for one, is not taken.
        let is_free = |volume: &Seen| {
            at(volume, &["spec", "claimRef"]).is_none_or(Value::is_null)
                || is_reserved_for(volume, claim)
        };
        world.get(&Key::new(VOLUMES, "", named)).filter(is_free)
    };
    let Some(volume) = volume else {
        if named.is_empty() {
            provision(key, claim, world, outcome);
        }
        return;
    };
    if at(&volume, &["spec", "claimRef", "uid"]).is_none() {
        let mut object = (*volume).clone();
        fields::set(&mut object, &["spec", "claimRef"], reference(claim));
        let bound = "pv.kubernetes.io/bound-by-controller";
        fields::set(&mut object, &["metadata", "annotations", bound], json!("yes"));
        let volume_key = Key::of(VOLUMES, &volume);
        outcome.push(Action::Update { key: volume_key, subresource: "", object });
        return;
    }
    if named.is_empty() {
        let mut object = claim.clone();
        fields::set(&mut object, &["spec", "volumeName"], json!(fields::name(&volume)));
        for mark in ["pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller"] {
            fields::set(&mut object, &["metadata", "annotations", mark], json!("yes"));
        }
        outcome.push(Action::Update { key: key.clone(), subresource: "", object });
        return;
    }
    let status = json!({
        "phase": "Bound",
        "accessModes": volume["spec"]["accessModes"],
        "capacity": volume["spec"]["capacity"],
    });
    outcome.put_status(key, claim, status);
}

fn reference(claim: &Value) -> Value {
    json!({
        "kind": "PersistentVolumeClaim",
        "namespace": fields::namespace(claim),
        "name": fields::name(claim),
        "uid": fields::uid(claim),
        "apiVersion": "v1",
        "resourceVersion": claim["metadata"]["resourceVersion"],
    })
}

fn is_reserved_for(volume: &Value, claim: &Value) -> bool {
    text(volume, &["spec", "claimRef", "name"]) == fields::name(claim)
        && text(volume, &["spec", "claimRef", "namespace"]) == fields::namespace(claim)
}

fn fits(volume: &Value, claim: &Value) -> bool {
    if fields::is_deleting(volume) {
        return false;
    }
    if at(volume, &["spec", "claimRef"]).is_some_and(|reference| !reference.is_null()) {
        let uid = text(volume, &["spec", "claimRef", "uid"]);
        return is_reserved_for(volume, claim) && (uid.is_empty() || uid == fields::uid(claim));
    }
    let class = ["spec", "storageClassName"];
    let modes = texts(volume, &["spec", "accessModes"]);
    let selector = at(claim, &["spec", "selector"]);
    text(volume, &class) == text(claim, &class)
        && texts(claim, &["spec", "accessModes"]).iter().all(|mode| modes.contains(mode))
        && capacity_of(volume)
            >= quantity(text(claim, &["spec", "resources", "requests", "storage"]))
        && super::label_selectors::matches_or_everything(
            selector,
            at(volume, &["metadata", "labels"]),
        )
}

fn capacity_of(volume: &Value) -> u128 {
    quantity(text(volume, &["spec", "capacity", "storage"]))
}

/// A storage quantity in thousandths of a byte; invalid ones count as zero.
fn quantity(text: &str) -> u128 {
    let end =
        text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let factor: u128 = match suffix {
        "m" => 1,
        "" => 1000,
        "k" => 1_000_000,
        "M" => 1_000_000_000,
        "G" => 1_000_000_000_000,
        "T" => 1_000_000_000_000_000,
        "P" => 1_000_000_000_000_000_000,
        "Ki" => 1000 << 10,
        "Mi" => 1000 << 20,
        "Gi" => 1000 << 30,
        "Ti" => 1000 << 40,
        "Pi" => 1000 << 50,
        _ => return 0,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole: u128 = whole.parse().unwrap_or(0);
    let scale = 10_u128.saturating_pow(u32::try_from(fraction.len()).unwrap_or(u32::MAX));
    let fraction: u128 = fraction.parse().unwrap_or(0);
    whole.saturating_mul(factor) + fraction.saturating_mul(factor) / scale.max(1)
}

/// Creates a volume for a claim, as its storage class would.
fn provision(key: &Key, claim: &Value, world: &dyn World, outcome: &mut Outcome) {
    let class_name = text(claim, &["spec", "storageClassName"]);
    let class = world.get(&Key::new(STORAGE_CLASSES, "", class_name));
    let Some(class) = class.filter(|_| !class_name.is_empty()) else { return };
    let waits = text(&class, &["volumeBindingMode"]) == "WaitForFirstConsumer";
    if waits && !is_used(key, world) {
        return;
    }
    let name = format!("pvc-{}", fields::uid(claim));
    let policy = match text(&class, &["reclaimPolicy"]) {
        "" => "Delete",
        policy => policy,
    };
    let mode = match text(claim, &["spec", "volumeMode"]) {
        "" => "Filesystem",
        mode => mode,
    };
    let storage = &claim["spec"]["resources"]["requests"]["storage"];
    outcome.push(Action::Create {
        collection: VOLUMES,
        object: json!({
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {
                "name": name,
                "annotations": {
                    "pv.kubernetes.io/provisioned-by": text(&class, &["provisioner"]),
                },
                "finalizers": [VOLUME_PROTECTION],
            },
            "spec": {
                "capacity": { "storage": storage },
                "hostPath": { "path": format!("/var/lib/kopf/{name}"), "type": "DirectoryOrCreate" },
                "accessModes": claim["spec"]["accessModes"],
                "claimRef": reference(claim),
                "persistentVolumeReclaimPolicy": policy,
                "storageClassName": class_name,
                "volumeMode": mode,
            },
        }),
    });
}

/// Updates a volume according to its claim: bound, released, or deleted.
fn update_volume(key: &Key, volume: &Value, world: &dyn World, outcome: &mut Outcome) {
    let claim = claim_of(volume, world);
    if fields::is_deleting(volume) {
        if claim.is_none() {
            drop_finalizer(key, volume, VOLUME_PROTECTION, outcome);
        }
        return;
    }
    let is_claimed = !text(volume, &["spec", "claimRef", "uid"]).is_empty();
    let phase = match (is_claimed, &claim) {
        (false, _) => "Available",
        (true, Some(_)) => "Bound",
        (true, None) => "Released",
    };
    let policy = text(volume, &["spec", "persistentVolumeReclaimPolicy"]);
    if phase == "Released" && policy == "Delete" {
        outcome.push(Action::Delete {
            key: key.clone(),
            uid: fields::uid(volume).to_owned(),
            propagation: Some(Propagation::Background),
            grace_seconds: None,
        });
        return;
    }
    if text(volume, &["status", "phase"]) != phase {
        outcome.put_status(key, volume, json!({ "phase": phase }));
    }
}

fn claim_of(volume: &Value, world: &dyn World) -> Option<Seen> {
    let reference = at(volume, &["spec", "claimRef"])?;
    let key = Key::new(CLAIMS, text(reference, &["namespace"]), text(reference, &["name"]));
    world.get(&key).filter(|claim| fields::uid(claim) == text(reference, &["uid"]))
}

#[cfg(test)]
mod tests;
