use std::collections::BTreeMap;

use super::*;

fn shares(assigned: &[Option<&str>]) -> BTreeMap<String, usize> {
    let mut shares = BTreeMap::new();
    for member in assigned.iter().flatten() {
        *shares.entry((*member).to_owned()).or_default() += 1;
    }
    shares
}

#[test]
fn without_members_nothing_is_assigned() {
    assert_eq!(assign(3, &[]), [None, None, None]);
}

#[test]
fn the_order_of_the_members_does_not_matter() {
    assert_eq!(assign(64, &["a", "b", "c"]), assign(64, &["c", "a", "b", "a"]));
}

#[test]
fn everyone_has_an_even_share() {
    for members in 1..=9 {
        let names: Vec<String> = (0..members).map(|it| format!("pod-{it}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let shares = shares(&assign(64, &names));
        let share_max = 64_usize.div_ceil(members);
        assert!(shares.values().all(|share| *share <= share_max), "{shares:?}");
        // The last one gets the rest.
        let share_min = 64 - share_max * (members - 1);
        assert!(shares.values().all(|share| *share >= share_min), "{shares:?}");
        assert_eq!(shares.len(), members, "{shares:?}");
    }
}

#[test]
fn few_ranges_move_when_a_member_leaves() {
    let before = assign(64, &["a", "b", "c", "d"]);
    let after = assign(64, &["a", "b", "c"]);
    let moved = before.iter().zip(&after).filter(|(before, after)| before != after).count();
    // The ranges of `d` must move; hardly more than as many again follow to keep the shares even.
    assert!(moved <= 32, "{moved}");
}
