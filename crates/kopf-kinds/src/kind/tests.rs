//! Tests that each record belongs to an existing resource, and that there are no duplicates.

use std::collections::HashSet;

use kopf_apimachinery::registry::{Registry, mutating_policies};

use super::{Kind, cluster, core, workloads};

#[test]
fn every_record_is_found_by_its_resource() {
    let records: Vec<&Kind> =
        [core::ALL, workloads::ALL, cluster::ALL].into_iter().flatten().collect();
    // Includes those behind a feature gate.
    let registry = Registry::with_custom(mutating_policies(), 1);
    let names: HashSet<(&str, &str)> = records.iter().map(|it| (it.group, it.resource)).collect();
    assert_eq!(names.len(), records.len(), "a kind has two records");
    for record in records {
        let mut served = registry.resources().iter();
        let resource = served
            .find(|it| it.group == record.group && it.resource == record.resource)
            .unwrap_or_else(|| panic!("{}/{} is not served", record.group, record.resource));
        let found = Kind::of(resource);
        assert_eq!((found.group, found.resource), (record.group, record.resource));
    }
}
