//! Whether this operator works or pauses in favour of others.
//!
//! Pure. The one with the highest priority works; equal priorities stop each other, since two
//! operators on one object are worse than none.

use kopf_model::Timestamp;
use kopf_model::peering::Peer;

/// What the records of a peering object mean for us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Whether to work or to pause.
    pub verdict: Verdict,
    /// The identities of others whose records are not valid any more and should be removed; ours
    /// is written again.
    pub dead: Vec<String>,
    /// When to look again, if nothing changes before: a peer that stops us may be dead by then.
    pub recheck_at: Option<Timestamp>,
}

/// Whether to work or to pause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nobody is in the way.
    Work,
    /// Others have a higher priority.
    Yield {
        /// Their identities.
        to: Vec<String>,
    },
    /// Others have the same priority: someone made a mistake.
    Conflict {
        /// Their identities.
        with: Vec<String>,
    },
}

/// Judges the records of a peering object.
#[must_use]
pub fn judge(peers: &[Peer], identity: &str, priority: i64, now: Timestamp) -> Standing {
    let (dead, alive): (Vec<&Peer>, Vec<&Peer>) = peers.iter().partition(|peer| peer.is_dead(now));
    let others = || alive.iter().filter(|peer| peer.identity != identity);
    let above: Vec<_> = others().filter(|peer| peer.priority > priority).collect();
    let equal: Vec<_> = others().filter(|peer| peer.priority == priority).collect();
    let names = |peers: &[&&Peer]| peers.iter().map(|peer| peer.identity.clone()).collect();
    let verdict = if !above.is_empty() {
        Verdict::Yield { to: names(&above) }
    } else if !equal.is_empty() {
        Verdict::Conflict { with: names(&equal) }
    } else {
        Verdict::Work
    };
    let blocking = above.iter().chain(&equal);
    Standing {
        verdict,
        dead: dead.iter().map(|peer| peer.identity.clone()).filter(|it| it != identity).collect(),
        recheck_at: blocking.map(|peer| peer.deadline()).min(),
    }
}

#[cfg(test)]
mod tests;
