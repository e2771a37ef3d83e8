use super::*;

fn member(identity: &str, life: u64) -> Member {
    Member { identity: identity.into(), life }
}

/// The values of Go's `hash/fnv`.
#[test]
fn the_hash_is_fnv_1a_with_64_bits() {
    assert_eq!(hash(b""), 0xcbf2_9ce4_8422_2325);
    assert_eq!(hash(b"a"), 0xaf63_dc4c_8601_ec8c);
    assert_eq!(hash(b"foobar"), 0x8594_4171_f739_67e8);
}

#[test]
fn every_hash_is_in_the_range_whose_bounds_enclose_it() {
    for count in [1, 2, 3, 5, 64, 100, RANGES_MAX] {
        let ranges = Ranges::new(ShardField::Uid, count);
        assert_eq!(ranges.start(0), 0);
        assert_eq!(ranges.start(count), 1 << 64);
        let edges = (0..count).flat_map(|range| [ranges.start(range), ranges.start(range + 1) - 1]);
        for (place, edge) in edges.enumerate() {
            let hash = u64::try_from(edge).unwrap();
            assert_eq!(ranges.of_hash(hash) as usize, place / 2, "{count} {hash:#x}");
        }
    }
}

#[test]
fn neighbouring_ranges_are_one_term_of_a_selector() {
    let ranges = Ranges::new(ShardField::Uid, 4);
    assert_eq!(
        ranges.selector([0, 1, 3]).unwrap(),
        "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000') || \
         shardRange(object.metadata.uid, '0xc000000000000000', '0x10000000000000000')"
    );
    assert_eq!(ranges.selector([]), None);
}

#[test]
fn objects_of_a_namespace_share_a_range() {
    let ranges = Ranges::new(ShardField::Namespace, 64);
    assert_eq!(ranges.of("one", Some("ns")), ranges.of("two", Some("ns")));
}

#[test]
fn a_table_reads_as_it_was_written() {
    let mut table = Table::empty(Ranges::new(ShardField::Namespace, 3));
    table.revision = 7;
    table.owners = vec![Some(member("b", 2)), None, Some(member("a", 0))];
    assert_eq!(Table::parse(&table.to_text()), Some(table));
}

#[test]
fn damaged_tables_are_not_read() {
    let damaged = [
        "",
        "{}",
        r#"{"revision":1,"field":"object.metadata.uid","members":[],"owners":[]}"#,
        r#"{"revision":1,"field":"object.metadata.uid","members":[],"owners":[0]}"#,
        r#"{"revision":1,"field":"spec.x","members":[],"owners":[null]}"#,
    ];
    for text in damaged {
        assert_eq!(Table::parse(text), None, "{text}");
    }
}
