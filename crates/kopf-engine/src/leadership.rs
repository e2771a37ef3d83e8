//! Replicas of one operator: which of them may act, and when.
//!
//! [`Tenure`] is the gate in front of all work: handlers, daemons, timers and writes check it. The
//! tasks in `election` and `sharing` maintain the Leases and open or close the gate; `kopf-core`
//! decides what the Leases mean.

use std::sync::Arc;
use std::time::Duration;

use kopf_core::election::TimesError;
use kopf_core::settings::{Leadership as Settings, LeadershipMode};
use kopf_model::lease::LABEL_MAX;
use tokio::sync::oneshot;

mod election;
mod leases;
mod replica;
mod sharing;
mod tenure;

pub(crate) use election::Candidate;
pub(crate) use leases::Leases;
pub(crate) use replica::Replica;
pub(crate) use sharing::Sharer;
pub use tenure::Leadership;
pub(crate) use tenure::{Share, Tenure};

/// The maximum length of an identity in the name of a Lease.
const NAME_PART_MAX: usize = 63;
/// The file with the namespace of a pod for its containers.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// How long releasing a Lease may take at shutdown.
pub(crate) const LEAVING_GRACE: Duration = Duration::from_secs(5);

/// Why replicas cannot cooperate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LeadershipError {
    /// The times are inconsistent.
    #[error("the times in settings.leadership cannot be used")]
    Times(#[from] TimesError),
    /// The Lease would have an invalid name.
    #[error(
        "settings.leadership.name is needed, in lowercase letters, digits and dashes: {name:?}"
    )]
    Name {
        /// The name.
        name: String,
    },
}

/// Our identity among the replicas: the name of the pod or the machine, and a random suffix.
pub(crate) fn identity() -> String {
    let host = ["POD_NAME", "HOSTNAME"].iter().find_map(|name| std::env::var(name).ok());
    let host = host.or_else(|| std::fs::read_to_string("/etc/hostname").ok());
    let host: String = host.unwrap_or_else(|| "replica".into()).trim().to_lowercase();
    let luck: String = (0..6).map(|_| fastrand::alphanumeric().to_ascii_lowercase()).collect();
    let is_plain = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-';
    let host: String =
        host.chars().map(|it| if is_plain(it) { it } else { '-' }).take(40).collect();
    format!("{}-{luck}", host.trim_matches('-'))
}

/// The name of the Lease.
pub(crate) fn name_of(settings: &Settings) -> Result<String, LeadershipError> {
    let program = || {
        let path = std::env::current_exe().ok()?;
        let name = path.file_stem()?.to_str()?.to_lowercase().replace(['_', '.'], "-");
        // All Python operators are run by the same program.
        Some(name).filter(|name| !name.starts_with("python"))
    };
    let name = settings.name.clone().or_else(program).unwrap_or_default();
    let is_plain = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || "-.".contains(it);
    let is_edge = |it: char| it.is_ascii_alphanumeric();
    let is_valid = name.len() <= 200
        && name.chars().all(is_plain)
        && name.starts_with(is_edge)
        && name.ends_with(is_edge);
    if is_valid { Ok(name) } else { Err(LeadershipError::Name { name }) }
}

/// An identity as part of the name of a Lease; unique if its end is, as with Kopf's identities.
pub(crate) fn as_name(identity: &str) -> String {
    let is_plain = |it: &char| it.is_ascii_lowercase() || it.is_ascii_digit();
    let plain = |it: char| Some(it.to_ascii_lowercase()).filter(is_plain).unwrap_or('-');
    let name: Vec<char> = identity.chars().map(plain).collect();
    let start = name.len().saturating_sub(NAME_PART_MAX);
    name[start..].iter().collect::<String>().trim_matches('-').to_owned()
}

/// The namespace of the Lease: the configured one, or the one in which the operator runs.
pub(crate) fn namespace_of(settings: &Settings, default: &str) -> String {
    let variable = || std::env::var("POD_NAMESPACE").ok();
    let file = || std::fs::read_to_string(NAMESPACE_FILE).ok().map(|it| it.trim().to_owned());
    let known = settings.namespace.clone().or_else(variable).or_else(file);
    known.filter(|it| !it.is_empty()).unwrap_or_else(|| default.to_owned())
}

/// Closes the gate if there may be other replicas; returns the mode.
pub(crate) fn prepare(
    settings: &Settings,
    tenure: &Arc<Tenure>,
) -> Result<LeadershipMode, LeadershipError> {
    if settings.mode != LeadershipMode::Alone {
        settings.times()?;
        let name = name_of(settings)?;
        // Members find each other by a label with the name.
        if settings.mode == LeadershipMode::Shards && name.len() > LABEL_MAX {
            return Err(LeadershipError::Name { name });
        }
        tenure.share_with_others();
    }
    Ok(settings.mode)
}

/// The task that maintains the Leases.
pub(crate) enum Keeper {
    Candidate(Box<Candidate>),
    Sharer(Box<Sharer>),
}

impl Keeper {
    /// Runs until it must stop, and then releases everything.
    pub(crate) async fn run(self, leaving: oneshot::Receiver<()>) {
        match self {
            Self::Candidate(candidate) => candidate.run(leaving).await,
            Self::Sharer(sharer) => sharer.run(leaving).await,
        }
    }
}

#[cfg(test)]
mod tests;
