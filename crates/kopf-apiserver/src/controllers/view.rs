//! The server's snapshot as a [`World`].

use crate::ResourceInfo;
use crate::local::LocalClient;
use crate::store::Snapshot;
use kopf_controllers::world::{Collection, Key, Seen, Served, World};

/// A snapshot, with the resources that the server currently serves.
pub(crate) struct SnapshotWorld<'a> {
    snapshot: Snapshot,
    client: &'a LocalClient,
}

impl<'a> SnapshotWorld<'a> {
    /// A view of `snapshot`.
    pub(crate) fn new(snapshot: &Snapshot, client: &'a LocalClient) -> Self {
        Self { snapshot: snapshot.clone(), client }
    }
}

impl World for SnapshotWorld<'_> {
    fn get(&self, key: &Key) -> Option<Seen> {
        self.snapshot.get(key.collection.table(), &key.namespace, &key.name).map(Seen)
    }

    fn list(&self, collection: &Collection, namespace: Option<&str>) -> Vec<Seen> {
        self.snapshot
            .list(collection.table(), namespace.unwrap_or_default())
            .map(|(_, stored)| Seen(stored))
            .collect()
    }

    fn served(&self) -> Vec<Served> {
        self.client
            .resources()
            .iter()
            .filter(|resource| is_stored(resource))
            .map(|resource| served(resource))
            .collect()
    }

    fn find_kind(&self, group: &str, kind: &str) -> Option<Served> {
        self.client
            .resources()
            .iter()
            .find(|resource| {
                resource.group == group && resource.kind == kind && resource.allows("list")
            })
            .map(|resource| served(resource))
    }
}

/// Whether objects are stored under this entry; every table has exactly one.
fn is_stored(resource: &ResourceInfo) -> bool {
    resource.version == resource.storage_version
        && resource.allows("list")
        && crate::status_error::qualified(&resource.resource, &resource.group) == *resource.table
}

fn served(resource: &ResourceInfo) -> Served {
    Served {
        collection: Collection::of_table(&resource.table),
        kind: resource.kind.clone(),
        namespaced: resource.namespaced,
    }
}
