//! The collections that built-in controllers read and write.

use super::world::Collection;

pub(crate) const NAMESPACES: Collection = Collection::of("namespaces");
pub(crate) const NODES: Collection = Collection::of("nodes");
pub(crate) const PODS: Collection = Collection::of("pods");
pub(crate) const SERVICES: Collection = Collection::of("services");
pub(crate) const ENDPOINTS: Collection = Collection::of("endpoints");
pub(crate) const CONFIG_MAPS: Collection = Collection::of("configmaps");
pub(crate) const SECRETS: Collection = Collection::of("secrets");
pub(crate) const SERVICE_ACCOUNTS: Collection = Collection::of("serviceaccounts");
pub(crate) const CLAIMS: Collection = Collection::of("persistentvolumeclaims");
pub(crate) const VOLUMES: Collection = Collection::of("persistentvolumes");
pub(crate) const STORAGE_CLASSES: Collection = Collection::of("storageclasses.storage.k8s.io");
pub(crate) const ENDPOINT_SLICES: Collection = Collection::of("endpointslices.discovery.k8s.io");
pub(crate) const DEPLOYMENTS: Collection = Collection::of("deployments.apps");
pub(crate) const REPLICA_SETS: Collection = Collection::of("replicasets.apps");
pub(crate) const STATEFUL_SETS: Collection = Collection::of("statefulsets.apps");
pub(crate) const DAEMON_SETS: Collection = Collection::of("daemonsets.apps");
pub(crate) const REVISIONS: Collection = Collection::of("controllerrevisions.apps");
pub(crate) const POLICIES: Collection =
    Collection::of("validatingadmissionpolicies.admissionregistration.k8s.io");
pub(crate) const QUOTAS: Collection = Collection::of("resourcequotas");
pub(crate) const BUDGETS: Collection = Collection::of("poddisruptionbudgets.policy");
pub(crate) const REPLICATION_CONTROLLERS: Collection = Collection::of("replicationcontrollers");
pub(crate) const CRON_JOBS: Collection = Collection::of("cronjobs.batch");
pub(crate) const JOBS: Collection = Collection::of("jobs.batch");
pub(crate) const DEFINITIONS: Collection =
    Collection::of("customresourcedefinitions.apiextensions.k8s.io");
pub(crate) const CLUSTER_ROLES: Collection =
    Collection::of("clusterroles.rbac.authorization.k8s.io");
pub(crate) const FLOW_SCHEMAS: Collection =
    Collection::of("flowschemas.flowcontrol.apiserver.k8s.io");
pub(crate) const PRIORITY_LEVELS: Collection =
    Collection::of("prioritylevelconfigurations.flowcontrol.apiserver.k8s.io");
