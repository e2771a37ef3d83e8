//! The special behaviour of the kinds of the core group.

use serde_json::{Value, json};

use super::{Generation, Kind, PLAIN, Protection, StatusMetadata};
use crate::KindContext;
use crate::fields::{fill, items_mut, list, object_mut};

/// All of these kinds.
pub(super) static ALL: &[Kind] = &[
    COMPONENTSTATUSES,
    ENDPOINTS,
    EVENTS,
    LIMITRANGES,
    NAMESPACES,
    NODES,
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    PODS,
    PODTEMPLATES,
    REPLICATIONCONTROLLERS,
    RESOURCEQUOTAS,
    SECRETS,
    SERVICEACCOUNTS,
    SERVICES,
    EVENTS_EVENTS,
];

/// `componentstatuses` of the core group.
const COMPONENTSTATUSES: Kind = Kind {
    group: "",
    resource: "componentstatuses",
    deprecation: Some("v1 ComponentStatus is deprecated in v1.19+"),
    ..PLAIN
};

/// `endpoints` of the core group.
const ENDPOINTS: Kind = Kind {
    group: "",
    resource: "endpoints",
    creates_on_update: true,
    deprecation: Some(
        "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    ),
    ..PLAIN
};

/// `events` of the core group.
const EVENTS: Kind = Kind {
    group: "",
    resource: "events",
    creates_on_update: true,
    selectable_fields: Some(&[
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ]),
    ..PLAIN
};

/// `limitranges` of the core group.
const LIMITRANGES: Kind =
    Kind { group: "", resource: "limitranges", creates_on_update: true, ..PLAIN };

/// `namespaces` of the core group.
const NAMESPACES: Kind = Kind {
    group: "",
    resource: "namespaces",
    prepare_create: Some(activate_namespace),
    prepare_update: Some(keep_namespace_spec),
    has_spec_finalizers: true,
    protection: Some(Protection {
        names: &["default", "kube-system", "kube-public"],
        reason: "this namespace may not be deleted",
    }),
    selectable_fields: Some(&["status.phase"]),
    ..PLAIN
};

/// `nodes` of the core group.
const NODES: Kind = Kind {
    group: "",
    resource: "nodes",
    keeps_status_on_create: true,
    selectable_fields: Some(&["spec.unschedulable"]),
    ..PLAIN
};

/// `persistentvolumeclaims` of the core group.
const PERSISTENTVOLUMECLAIMS: Kind = Kind {
    group: "",
    resource: "persistentvolumeclaims",
    admit: Some(protect_claim),
    prepare_create: Some(crate::claims::prepare_create),
    prepare_update: Some(crate::claims::prepare_update),
    is_checked_twice: true,
    returns_deleted: true,
    ..PLAIN
};

/// `persistentvolumes` of the core group.
const PERSISTENTVOLUMES: Kind = Kind {
    group: "",
    resource: "persistentvolumes",
    admit: Some(protect_volume),
    prepare_create: Some(start_volume),
    is_checked_twice: true,
    returns_deleted: true,
    ..PLAIN
};

/// `pods` of the core group.
const PODS: Kind = Kind {
    group: "",
    resource: "pods",
    generation: Generation::CountsChanges,
    admit: Some(crate::pods::admit),
    prepare_create: Some(crate::pods::prepare_create),
    prepare_update: Some(crate::pods::prepare_update),
    status_metadata: StatusMetadata::GivenBut("ownerReferences"),
    ends_gracefully: true,
    returns_deleted: true,
    selectable_fields: Some(&[
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.podIPs",
        "status.nominatedNodeName",
    ]),
    ..PLAIN
};

/// `podtemplates` of the core group.
const PODTEMPLATES: Kind = Kind {
    group: "",
    resource: "podtemplates",
    generation: Generation::CountsChanges,
    returns_deleted: true,
    ..PLAIN
};

/// `replicationcontrollers` of the core group.
const REPLICATIONCONTROLLERS: Kind = Kind {
    group: "",
    resource: "replicationcontrollers",
    is_checked_twice: true,
    generation: Generation::CountsChanges,
    orphans_dependents: true,
    selectable_fields: Some(&["status.replicas"]),
    ..PLAIN
};

/// `resourcequotas` of the core group.
const RESOURCEQUOTAS: Kind =
    Kind { group: "", resource: "resourcequotas", returns_deleted: true, ..PLAIN };

/// `secrets` of the core group.
const SECRETS: Kind =
    Kind { group: "", resource: "secrets", selectable_fields: Some(&["type"]), ..PLAIN };

/// `serviceaccounts` of the core group.
const SERVICEACCOUNTS: Kind = Kind {
    group: "",
    resource: "serviceaccounts",
    returns_deleted: true,
    prepare_create: Some(keep_names_of_secrets),
    prepare_update: Some(keep_names_of_updated_secrets),
    ..PLAIN
};

fn keep_names_of_updated_secrets(context: &KindContext<'_>, object: &mut Value, _: &Value) {
    keep_names_of_secrets(context, object);
}

/// Only the names of an account's secrets are kept.
fn keep_names_of_secrets(_: &KindContext<'_>, object: &mut Value) {
    for secret in items_mut(object, "secrets") {
        if let Some(fields) = secret.as_object_mut() {
            fields.retain(|field, _| field == "name");
        }
    }
}

/// `services` of the core group.
const SERVICES: Kind = Kind {
    group: "",
    resource: "services",
    creates_on_update: true,
    prepare_create: Some(crate::services::prepare_create),
    prepare_update: Some(crate::services::prepare_update),
    returns_deleted: true,
    selectable_fields: Some(&["spec.clusterIP", "spec.type"]),
    ..PLAIN
};

/// `events` of `events.k8s.io`.
const EVENTS_EVENTS: Kind = Kind {
    group: "events.k8s.io",
    resource: "events",
    creates_on_update: true,
    selectable_fields: Some(&[
        "regarding.kind",
        "regarding.namespace",
        "regarding.name",
        "regarding.uid",
        "regarding.apiVersion",
        "regarding.resourceVersion",
        "regarding.fieldPath",
        "reason",
        "reportingController",
        "type",
    ]),
    ..PLAIN
};

fn protect_volume(_: &KindContext<'_>, object: &mut Value) {
    add_finalizer(object, "kubernetes.io/pv-protection");
}

fn protect_claim(_: &KindContext<'_>, object: &mut Value) {
    add_finalizer(object, "kubernetes.io/pvc-protection");
}

fn start_volume(context: &KindContext<'_>, object: &mut Value) {
    let now = format!("{:.0}", context.now);
    object["status"] = json!({"phase": "Pending", "lastPhaseTransitionTime": now});
}

/// Only `/finalize` changes the finalizers of a namespace, and it changes nothing else.
fn keep_namespace_spec(context: &KindContext<'_>, object: &mut Value, old: &Value) {
    match context.subresource {
        "" => object["spec"] = old["spec"].clone(),
        "finalize" => object["status"] = old["status"].clone(),
        _ => {}
    }
}

fn activate_namespace(_: &KindContext<'_>, object: &mut Value) {
    if let Some(spec) = object_mut(object, "spec")
        && !list(spec, "finalizers").iter().any(|each| each == "kubernetes")
    {
        let mut held = list(spec, "finalizers").to_vec();
        held.push("kubernetes".into());
        spec["finalizers"] = Value::Array(held);
    }
    object["status"] = json!({"phase": "Active"});
}

fn add_finalizer(object: &mut Value, finalizer: &str) {
    let Some(metadata) = object_mut(object, "metadata") else { return };
    if list(metadata, "finalizers").iter().any(|present| present == finalizer) {
        return;
    }
    fill(metadata, "finalizers", json!([]));
    if let Some(finalizers) = metadata["finalizers"].as_array_mut() {
        finalizers.push(finalizer.into());
    }
}
