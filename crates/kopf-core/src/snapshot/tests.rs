//! Which watches may continue from a snapshot, and that only complete snapshots are read.

use std::sync::Arc;

use kopf_model::Selector;

use super::*;
use crate::filter::{MetaFilter, ValueFilter};
use crate::handler::{DaemonOptions, Handler, HandlerKind, TimerOptions};
use crate::registry::Registry;
use crate::settings::{ProgressStorageSetting, Settings};
use crate::test_fixture::{handler, resource, storages};

fn sample() -> Snapshot {
    let settled = |number: u64| Settled {
        uid: u128::from(number) << 70 | 7,
        version: Version::from_number(number * 10),
    };
    let name = |namespace: Option<&str>, name: &str| ObjectName {
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
    };
    let key = |resource: &str| SectionKey {
        server: "https://10.96.0.1/".into(),
        schema: "A1B2".into(),
        resource: resource.into(),
        namespace: "default".into(),
        selectors: ["a=b".into(), String::new(), String::new()],
        basis: "0123".into(),
    };
    Snapshot {
        sections: vec![
            Section {
                key: key("kopfexamples.v1.kopf.dev"),
                version: Version::from_number(1234),
                settled: (1..4).map(settled).collect(),
                unsettled: vec![name(Some("default"), "a"), name(None, "b \"\n")],
            },
            Section {
                key: key("others.v1.kopf.dev"),
                version: Version::from_number(5),
                settled: Vec::new(),
                unsettled: Vec::new(),
            },
        ],
    }
}

#[test]
fn a_snapshot_is_read_as_it_was_written() {
    for snapshot in [sample(), Snapshot::default()] {
        assert_eq!(decode(&encode(&snapshot)), Ok(snapshot));
    }
}

#[test]
fn damage_anywhere_is_detected() {
    let bytes = encode(&sample());
    for length in 0..bytes.len() {
        assert!(decode(&bytes[..length]).is_err(), "cut to {length}");
    }
    for index in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[index] ^= 1;
        assert!(decode(&damaged).is_err(), "byte {index}");
    }
    let longer: Vec<u8> = bytes.iter().copied().chain([0]).collect();
    assert_eq!(decode(&longer), Err(SnapshotError::Damaged));
}

#[test]
fn other_files_and_formats_are_distinguished() {
    assert_eq!(decode(b""), Err(SnapshotError::Foreign));
    assert_eq!(decode(b"apiVersion: v1\n"), Err(SnapshotError::Foreign));
    assert_eq!(decode(b"kopf-snapshot 2\n[]\n"), Err(SnapshotError::OtherFormat));
    assert_eq!(decode(b"kopf-snapshot 12\n[]\n"), Err(SnapshotError::OtherFormat));
    assert_eq!(decode(b"kopf-snapshot 1\n[]\n"), Err(SnapshotError::Damaged));
}

fn basis_of(handlers: Vec<Handler>) -> Option<String> {
    basis_with(handlers, &Settings::default())
}

fn basis_with(handlers: Vec<Handler>, settings: &Settings) -> Option<String> {
    let registry: Registry = handlers.into_iter().collect();
    basis(&registry.for_resource(&resource()), settings)
}

#[test]
fn only_change_handlers_can_continue_from_a_snapshot() {
    let changes = || {
        vec![
            handler("c", HandlerKind::Create),
            handler("u", HandlerKind::Update),
            handler("d", HandlerKind::Delete { optional: false }),
            handler("f", HandlerKind::Field),
        ]
    };
    assert!(basis_of(changes()).is_some());
    for kind in [
        HandlerKind::Resume { deleted: false },
        HandlerKind::Event,
        HandlerKind::Index,
        HandlerKind::Daemon(DaemonOptions::default()),
        HandlerKind::Timer(TimerOptions::default()),
        HandlerKind::Desired,
        HandlerKind::Observe,
    ] {
        let mut handlers = changes();
        handlers.push(handler("other", kind));
        assert_eq!(basis_of(handlers), None);
    }
}

#[test]
fn functions_and_children_need_all_objects() {
    let with = |change: fn(&mut Handler)| {
        let mut handler = handler("c", HandlerKind::Create);
        change(&mut handler);
        handler
    };
    for handler in [
        with(|it| it.filters.when = Some(Arc::new(|_, _| Ok(true)))),
        with(|it| it.filters.value = Some(ValueFilter::Matches(Arc::new(|_, _, _| Ok(true))))),
        with(|it| it.filters.old = Some(ValueFilter::Matches(Arc::new(|_, _, _| Ok(true))))),
        with(|it| {
            let filter = MetaFilter::Matches(Arc::new(|_, _, _| Ok(true)));
            it.filters.labels.push(("l".into(), filter));
        }),
        with(|it| it.children = vec![Selector::default()]),
    ] {
        assert!(needs_all_objects(&handler));
        assert_eq!(basis_of(vec![handler]), None);
    }
}

#[test]
fn other_handlers_and_settings_are_another_basis() {
    let known = basis_of(vec![handler("c", HandlerKind::Create)]);
    assert_eq!(basis_of(vec![handler("c", HandlerKind::Create)]), known);
    let mut labelled = handler("c", HandlerKind::Create);
    labelled.filters.labels.push(("l".into(), MetaFilter::Present));
    let mut settings = Settings::default();
    settings.persistence.finalizer = "another".into();
    let others = [
        basis_of(vec![handler("other", HandlerKind::Create)]),
        basis_of(vec![handler("c", HandlerKind::Update)]),
        basis_of(vec![
            handler("c", HandlerKind::Create),
            handler("d", HandlerKind::Delete { optional: false }),
        ]),
        basis_of(vec![labelled]),
        basis_with(vec![handler("c", HandlerKind::Create)], &settings),
    ];
    for other in others {
        assert!(other.is_some());
        assert_ne!(other, known);
    }
}

#[test]
fn custom_storages_need_a_name() {
    let mut settings = Settings::default();
    settings.persistence.progress_storage = ProgressStorageSetting::Custom(storages().progress);
    let create = || vec![handler("c", HandlerKind::Create)];
    assert_eq!(basis_with(create(), &settings), None);
    settings.snapshots.storages = Some("v1".into());
    let one = basis_with(create(), &settings);
    assert!(one.is_some());
    settings.snapshots.storages = Some("v2".into());
    assert_ne!(basis_with(create(), &settings), one);
}

#[test]
fn many_unsettled_objects_are_listed() {
    let mut section = sample().sections.remove(0);
    let name = section.unsettled[0].clone();
    section.unsettled = vec![name.clone(); 100];
    assert!(section.is_cheaper_than_list());
    section.unsettled.push(name);
    assert!(!section.is_cheaper_than_list());
    section.settled = vec![section.settled[0]; 1010];
    assert!(section.is_cheaper_than_list());
}
