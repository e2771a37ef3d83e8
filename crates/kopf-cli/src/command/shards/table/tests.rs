//! Tests of the table.

use kopf_model::shards::{Member, Ranges, ShardField};

use super::*;

fn lease(name: &str, holder: &str, table: Option<&Table>) -> Value {
    let mut lease = json!({
        "metadata": {"name": name, "namespace": "ops", "labels": {GROUP_LABEL: "demo"}},
        "spec": {
            "holderIdentity": holder,
            "leaseDurationSeconds": 15,
            "renewTime": "2026-01-01T00:00:00.000000Z",
        },
    });
    if let Some(table) = table {
        lease["metadata"]["annotations"] = json!({TABLE_ANNOTATION: table.to_text()});
    }
    lease
}

fn demo() -> Group {
    let mut table = Table::empty(Ranges::new(ShardField::Uid, 4));
    let owner = |identity: &str| Some(Member { identity: identity.into(), life: 1 });
    table.owners = vec![owner("a"), owner("a"), None, owner("b")];
    table.revision = 7;
    let leases = [
        lease("demo-shards", "a", Some(&table)),
        lease("demo-a", "a", None),
        lease("demo-b", "b", None),
        lease("demo-gone", "", None),
    ];
    let mut found = groups(&leases);
    assert_eq!(found.len(), 1);
    found.remove(0)
}

#[test]
fn the_table_has_members_ranges_and_objects() {
    let mut group = demo();
    let objects: Vec<Value> =
        (0..20).map(|it| json!({"metadata": {"name": "x", "uid": format!("{it:032x}")}})).collect();
    group.count(&objects);
    assert_eq!(group.objects.as_ref().expect("counts").values().sum::<usize>(), 20);
    group.objects = Some([("a".to_owned(), 12), ("b".to_owned(), 8)].into());
    let now = "2026-01-01T00:00:03Z".parse().expect("a time");
    assert_eq!(
        group.render(now),
        "demo in ops: 4 ranges of object.metadata.uid, revision 7\n\
         MEMBER      RENEWED  OBJECTS  RANGES\n\
         (nobody)                   0  1: 2\n\
         a           3 s ago       12  2: 0-1\n\
         b           3 s ago        8  1: 3\n"
    );
    assert_eq!(group.document()["members"][1]["ranges"], json!([0, 1]));
}

#[test]
fn an_object_has_an_owner_or_the_reason_why_nothing_happens() {
    let mut group = demo();
    let line = |group: &Group, uid: &str, now: &str| {
        let object = Object::from_value(json!({"metadata": {"name": "x", "uid": uid}}));
        group.owner_line(&object, now.parse().expect("a time"))
    };
    let (soon, late) = ("2026-01-01T00:00:14Z", "2026-01-01T00:00:20Z");
    // The hashes of Go's tests of FNV-1a: 0xaf63dc4c8601ec8c and 0xcbf29ce484222325.
    let of_nobody = line(&group, "a", soon);
    assert!(of_nobody.contains("range 2 of 4 of demo, which nobody has"), "{of_nobody}");
    let of_b = line(&group, "", soon);
    assert!(of_b.contains("range 3 of 4 of demo, served by replica b"), "{of_b}");
    let of_dead = line(&group, "", late);
    assert!(of_dead.contains("replica b, which has not renewed its Lease for 20 s"), "{of_dead}");
    group.members.remove("b");
    let of_gone = line(&group, "", soon);
    assert!(of_gone.contains("of replica b, which has left: nothing happens"), "{of_gone}");
    let shown = group.render(soon.parse().expect("a time"));
    assert!(shown.contains("b              left           1: 3\n"), "{shown}");
}

#[test]
fn a_leader_is_named_unless_its_lease_has_ended() {
    let line = |holder: &str, now: &str| {
        leader_line(&lease("demo", holder, None), now.parse().expect("a time"))
    };
    let soon = "2026-01-01T00:00:14Z";
    assert!(line("a", soon).contains("served by replica a, which leads"), "{}", line("a", soon));
    let late = "2026-01-01T00:00:20Z";
    assert!(line("a", late).contains("has not renewed the Lease demo in ops for 20 s"));
    assert!(line("", soon).contains("nobody holds the Lease demo in ops"));
}
