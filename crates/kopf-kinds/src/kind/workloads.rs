//! The special behaviour of workloads and related kinds.

use serde_json::Value;

use super::{Generation, Kind, PLAIN, Protection, StatusMetadata};
use crate::KindContext;

/// All of these kinds.
pub(super) static ALL: &[Kind] = &[
    DAEMONSETS,
    DEPLOYMENTS,
    REPLICASETS,
    STATEFULSETS,
    CRONJOBS,
    JOBS,
    PODDISRUPTIONBUDGETS,
    PRIORITYCLASSES,
];

/// `daemonsets` of `apps`.
const DAEMONSETS: Kind = Kind {
    group: "apps",
    resource: "daemonsets",
    is_checked_twice: true,
    generation: Generation::CountsChanges,
    prepare_update: Some(count_template),
    ..PLAIN
};

/// `deployments` of `apps`.
const DEPLOYMENTS: Kind = Kind {
    group: "apps",
    resource: "deployments",
    generation: Generation::CountsAnnotations,
    status_metadata: StatusMetadata::GivenBut("labels"),
    ..PLAIN
};

/// `replicasets` of `apps`.
const REPLICASETS: Kind = Kind {
    group: "apps",
    resource: "replicasets",
    is_checked_twice: true,
    generation: Generation::CountsChanges,
    ..PLAIN
};

/// `statefulsets` of `apps`.
const STATEFULSETS: Kind = Kind {
    group: "apps",
    resource: "statefulsets",
    generation: Generation::CountsChanges,
    ..PLAIN
};

/// `cronjobs` of `batch`.
const CRONJOBS: Kind =
    Kind { group: "batch", resource: "cronjobs", generation: Generation::CountsChanges, ..PLAIN };

/// `jobs` of `batch`.
const JOBS: Kind = Kind {
    group: "batch",
    resource: "jobs",
    generation: Generation::CountsChanges,
    prepare_create: Some(crate::jobs::prepare_create),
    deletion_warning: Some(
        "child pods are preserved by default when jobs are deleted; set \
         propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress \
         this warning",
    ),
    orphans_dependents: true,
    selectable_fields: Some(&["status.successful"]),
    ..PLAIN
};

/// `poddisruptionbudgets` of `policy`.
const PODDISRUPTIONBUDGETS: Kind = Kind {
    group: "policy",
    resource: "poddisruptionbudgets",
    needs_version: true,
    generation: Generation::CountsChanges,
    ..PLAIN
};

/// `priorityclasses` of `scheduling.k8s.io`.
const PRIORITYCLASSES: Kind = Kind {
    group: "scheduling.k8s.io",
    resource: "priorityclasses",
    protection: Some(Protection {
        names: &["system-node-critical", "system-cluster-critical"],
        reason: "this is a system priority class and cannot be deleted",
    }),
    generation: Generation::Fixed,
    ..PLAIN
};

/// DaemonSets count the changes of their template in an annotation.
fn count_template(_: &KindContext<'_>, object: &mut Value, old: &Value) {
    const COUNTER: &str = "/metadata/annotations/deprecated.daemonset.template.generation";
    let before = old.pointer(COUNTER).and_then(Value::as_str).and_then(|text| text.parse().ok());
    let before: u64 = before.unwrap_or(1);
    let is_changed = object["spec"]["template"] != old["spec"]["template"];
    if let Some(counter) = object.pointer_mut(COUNTER) {
        *counter = (before + u64::from(is_changed)).to_string().into();
    }
}
