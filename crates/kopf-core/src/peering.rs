//! Decides whether this operator works or pauses in favour of others.
//!
//! Pure. The operator with the highest priority works. Operators with equal priorities stop each
//! other, since two operators on one object are worse than none.

use kopf_model::Timestamp;
use kopf_model::peering::Peer;

/// What the records of a peering object mean for this operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Whether to work or to pause.
    pub verdict: Verdict,
    /// The identities of other operators whose records have expired and should be removed; our own
    /// record is written again.
    pub dead: Vec<String>,
    /// When to check again if nothing changes before: a peer that stops us may have expired by
    /// then.
    pub recheck_at: Option<Timestamp>,
}

/// Whether to work or to pause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No other operator prevents it.
    Work,
    /// Others have a higher priority.
    Yield {
        /// Their identities.
        to: Vec<String>,
    },
    /// Others have the same priority, which is a configuration mistake.
    Conflict {
        /// Their identities.
        with: Vec<String>,
    },
}

/// Evaluates the records of a peering object.
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
