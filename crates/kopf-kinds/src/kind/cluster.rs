//! The special behaviour of the kinds of all other groups.

use serde_json::Value;

use super::{Generation, Kind, PLAIN, StatusMetadata};
use crate::KindContext;

/// All of these kinds.
pub(super) static ALL: &[Kind] = &[
    MUTATINGADMISSIONPOLICIES,
    MUTATINGADMISSIONPOLICYBINDINGS,
    MUTATINGWEBHOOKCONFIGURATIONS,
    VALIDATINGADMISSIONPOLICIES,
    VALIDATINGADMISSIONPOLICYBINDINGS,
    VALIDATINGWEBHOOKCONFIGURATIONS,
    CUSTOMRESOURCEDEFINITIONS,
    APISERVICES,
    CERTIFICATESIGNINGREQUESTS,
    LEASES,
    ENDPOINTSLICES,
    FLOWSCHEMAS,
    PRIORITYLEVELCONFIGURATIONS,
    INGRESSCLASSES,
    INGRESSES,
    NETWORKPOLICIES,
    RUNTIMECLASSES,
    CLUSTERROLEBINDINGS,
    CLUSTERROLES,
    ROLEBINDINGS,
    ROLES,
    CSIDRIVERS,
    CSINODES,
    CSISTORAGECAPACITIES,
    STORAGECLASSES,
    VOLUMEATTACHMENTS,
];

/// `mutatingadmissionpolicies` of `admissionregistration.k8s.io`.
const MUTATINGADMISSIONPOLICIES: Kind = Kind {
    group: "admissionregistration.k8s.io",
    resource: "mutatingadmissionpolicies",
    needs_version: true,
    generation: Generation::CountsChanges,
    ..PLAIN
};

/// `mutatingadmissionpolicybindings` of `admissionregistration.k8s.io`.
const MUTATINGADMISSIONPOLICYBINDINGS: Kind = Kind {
    group: "admissionregistration.k8s.io",
    resource: "mutatingadmissionpolicybindings",
    needs_version: true,
    generation: Generation::CountsChanges,
    ..PLAIN
};

/// `mutatingwebhookconfigurations` of `admissionregistration.k8s.io`.
const MUTATINGWEBHOOKCONFIGURATIONS: Kind = Kind {
    group: "admissionregistration.k8s.io",
    resource: "mutatingwebhookconfigurations",
    needs_version: true,
    generation: Generation::CountsChanges,
    ..PLAIN
};

/// `validatingadmissionpolicies` of `admissionregistration.k8s.io`.
const VALIDATINGADMISSIONPOLICIES: Kind = Kind {
    group: "admissionregistration.k8s.io",
    resource: "validatingadmissionpolicies",
    needs_version: true,
    generation: Generation::CountsChanges,
    status_metadata: StatusMetadata::Stored,
    ..PLAIN
};

/// `validatingadmissionpolicybindings` of `admissionregistration.k8s.io`.
const VALIDATINGADMISSIONPOLICYBINDINGS: Kind = Kind {
    group: "admissionregistration.k8s.io",
    resource: "validatingadmissionpolicybindings",
    needs_version: true,
    generation: Generation::CountsChanges,
    ..PLAIN
};

/// `validatingwebhookconfigurations` of `admissionregistration.k8s.io`.
const VALIDATINGWEBHOOKCONFIGURATIONS: Kind = Kind {
    group: "admissionregistration.k8s.io",
    resource: "validatingwebhookconfigurations",
    needs_version: true,
    generation: Generation::CountsChanges,
    ..PLAIN
};

/// `customresourcedefinitions` of `apiextensions.k8s.io`.
const CUSTOMRESOURCEDEFINITIONS: Kind = Kind {
    group: "apiextensions.k8s.io",
    resource: "customresourcedefinitions",
    needs_version: true,
    generation: Generation::CountsChanges,
    ..PLAIN
};

/// `apiservices` of `apiregistration.k8s.io`.
const APISERVICES: Kind = Kind {
    group: "apiregistration.k8s.io",
    resource: "apiservices",
    needs_version: true,
    status_metadata: StatusMetadata::Stored,
    ..PLAIN
};

/// `certificatesigningrequests` of `certificates.k8s.io`.
const CERTIFICATESIGNINGREQUESTS: Kind = Kind {
    group: "certificates.k8s.io",
    resource: "certificatesigningrequests",
    prepare_update: Some(crate::certificates::prepare_update),
    selectable_fields: Some(&["spec.signerName"]),
    ..PLAIN
};

/// `leases` of `coordination.k8s.io`.
const LEASES: Kind = Kind {
    group: "coordination.k8s.io",
    resource: "leases",
    prepare_create: Some(forget_election),
    prepare_update: Some(|context, object, _| forget_election(context, object)),
    creates_on_update: true,
    needs_version: true,
    ..PLAIN
};

/// `endpointslices` of `discovery.k8s.io`.
const ENDPOINTSLICES: Kind = Kind {
    group: "discovery.k8s.io",
    resource: "endpointslices",
    generation: Generation::CountsChanges,
    ..PLAIN
};

/// `flowschemas` of `flowcontrol.apiserver.k8s.io`.
const FLOWSCHEMAS: Kind = Kind {
    group: "flowcontrol.apiserver.k8s.io",
    resource: "flowschemas",
    needs_version: true,
    generation: Generation::CountsChanges,
    status_metadata: StatusMetadata::Stored,
    ..PLAIN
};

/// `prioritylevelconfigurations` of `flowcontrol.apiserver.k8s.io`.
const PRIORITYLEVELCONFIGURATIONS: Kind = Kind {
    group: "flowcontrol.apiserver.k8s.io",
    resource: "prioritylevelconfigurations",
    needs_version: true,
    generation: Generation::CountsChanges,
    status_metadata: StatusMetadata::Stored,
    ..PLAIN
};

/// `ingressclasses` of `networking.k8s.io`.
const INGRESSCLASSES: Kind = Kind {
    group: "networking.k8s.io",
    resource: "ingressclasses",
    generation: Generation::CountsChanges,
    ..PLAIN
};

/// `ingresses` of `networking.k8s.io`.
const INGRESSES: Kind = Kind {
    group: "networking.k8s.io",
    resource: "ingresses",
    generation: Generation::CountsChanges,
    ..PLAIN
};

/// `networkpolicies` of `networking.k8s.io`.
const NETWORKPOLICIES: Kind = Kind {
    group: "networking.k8s.io",
    resource: "networkpolicies",
    is_checked_twice: true,
    generation: Generation::CountsChanges,
    ..PLAIN
};

/// `runtimeclasses` of `node.k8s.io`.
const RUNTIMECLASSES: Kind = Kind {
    group: "node.k8s.io",
    resource: "runtimeclasses",
    creates_on_update: true,
    needs_version: true,
    ..PLAIN
};

/// `clusterrolebindings` of `rbac.authorization.k8s.io`.
const CLUSTERROLEBINDINGS: Kind = Kind {
    group: "rbac.authorization.k8s.io",
    resource: "clusterrolebindings",
    is_checked_twice: true,
    creates_on_update: true,
    ..PLAIN
};

/// `clusterroles` of `rbac.authorization.k8s.io`.
const CLUSTERROLES: Kind = Kind {
    group: "rbac.authorization.k8s.io",
    resource: "clusterroles",
    is_checked_twice: true,
    creates_on_update: true,
    ..PLAIN
};

/// `rolebindings` of `rbac.authorization.k8s.io`.
const ROLEBINDINGS: Kind = Kind {
    group: "rbac.authorization.k8s.io",
    resource: "rolebindings",
    is_checked_twice: true,
    creates_on_update: true,
    ..PLAIN
};

/// `roles` of `rbac.authorization.k8s.io`.
const ROLES: Kind = Kind {
    group: "rbac.authorization.k8s.io",
    resource: "roles",
    is_checked_twice: true,
    creates_on_update: true,
    ..PLAIN
};

/// `csidrivers` of `storage.k8s.io`.
const CSIDRIVERS: Kind = Kind {
    group: "storage.k8s.io",
    resource: "csidrivers",
    needs_version: true,
    generation: Generation::CountsFromZero,
    returns_deleted: true,
    ..PLAIN
};

/// `csinodes` of `storage.k8s.io`.
const CSINODES: Kind = Kind {
    group: "storage.k8s.io",
    resource: "csinodes",
    needs_version: true,
    is_checked_twice: true,
    returns_deleted: true,
    ..PLAIN
};

/// `csistoragecapacities` of `storage.k8s.io`.
const CSISTORAGECAPACITIES: Kind = Kind {
    group: "storage.k8s.io",
    resource: "csistoragecapacities",
    needs_version: true,
    ..PLAIN
};

/// `storageclasses` of `storage.k8s.io`.
const STORAGECLASSES: Kind =
    Kind { group: "storage.k8s.io", resource: "storageclasses", returns_deleted: true, ..PLAIN };

/// `volumeattachments` of `storage.k8s.io`.
const VOLUMEATTACHMENTS: Kind = Kind {
    group: "storage.k8s.io",
    resource: "volumeattachments",
    needs_version: true,
    is_checked_twice: true,
    returns_deleted: true,
    status_metadata: StatusMetadata::Stored,
    ..PLAIN
};

/// Drops the fields of coordinated leader election, which is off by default.
fn forget_election(_: &KindContext<'_>, object: &mut Value) {
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        spec.shift_remove("strategy");
        spec.shift_remove("preferredHolder");
    }
}
