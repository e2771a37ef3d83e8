//! Assigns shares of the objects to replicas.
//!
//! [`assign`] computes how the ranges of the hash space should be distributed; the result is the
//! same for all replicas that know the same members. [`Membership`] is one replica's part in moving
//! them there safely.

use kopf_model::shards::hash;

mod membership;

pub use kopf_model::shards::{Member, Ranges, ShardField, Table};
pub use membership::{Expiration, Membership, TableStep, TableWrite};

/// The member that each range should have; `None` if there are no members.
///
/// Every range goes to the member with the highest score for it (rendezvous hashing), unless that
/// one already has its even share. So all members have about the same number, and few ranges move
/// when a member joins or leaves. The order of the members does not matter.
#[must_use]
pub fn assign<'a>(count: u32, members: &[&'a str]) -> Vec<Option<&'a str>> {
    let mut members = members.to_vec();
    members.sort_unstable();
    members.dedup();
    let share_max = (count as usize).div_ceil(members.len().max(1));
    let mut shares = vec![0_usize; members.len()];
    let choose = |range: u32| {
        let free = (0..members.len()).filter(|place| shares[*place] < share_max);
        let best = free.max_by_key(|place| score(members[*place], range))?;
        shares[best] += 1;
        Some(members[best])
    };
    (0..count).map(choose).collect()
}

/// The score of a member for a range.
fn score(member: &str, range: u32) -> u64 {
    let mut mixed = hash(member.as_bytes()) ^ hash(&range.to_le_bytes()).rotate_left(32);
    // FNV alone does not spread the last bytes over all bits.
    for factor in [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb] {
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(factor);
    }
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests;
