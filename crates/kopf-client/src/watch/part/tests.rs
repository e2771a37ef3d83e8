//! Tests of parts.

use super::*;

fn part(held: &[(u32, u64)]) -> Part {
    Part::new(Ranges::new(ShardField::Uid, 4), held.iter().copied().collect())
}

#[test]
fn a_range_that_was_given_away_meanwhile_counts_as_added() {
    let former = part(&[(0, 1), (1, 1), (2, 1)]);
    assert_eq!(part(&[(0, 1), (1, 1)]).added_to(&former), part(&[]));
    assert_eq!(part(&[(0, 1), (1, 3), (3, 3)]).added_to(&former), part(&[(1, 3), (3, 3)]));
    let other = Part::new(Ranges::new(ShardField::Namespace, 4), [(0, 1)].into());
    assert_eq!(other.added_to(&former), other);
}

#[test]
fn the_whole_collection_needs_no_selector() {
    assert_eq!(part(&[(0, 1), (1, 1), (2, 1), (3, 1)]).selector(), None);
    assert_eq!(part(&[]).selector(), None);
    assert_eq!(
        part(&[(2, 1), (3, 1)]).selector().unwrap(),
        "shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')"
    );
    let scattered = (0..1024).step_by(2).map(|range| (range, 1)).collect();
    let many = Part::new(Ranges::new(ShardField::Uid, 1024), scattered);
    assert_eq!(many.selector(), None, "the address would be too long");
}
