//! Settings of replicas: none, one that leads while others stand by, or all of them by shares.

use std::time::Duration;

use kopf_model::shards::ShardField;

use crate::election::{Times, TimesError};

/// Replicas of this operator: who leads, or who has which share of the objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leadership {
    /// What replicas do. Changes apply after a restart.
    pub mode: LeadershipMode,
    /// The name of the Lease; the same for all replicas, and for no other operator. By default the
    /// name of the program. Changes apply after a restart.
    pub name: Option<String>,
    /// The namespace of the Lease; by default the operator's own. Changes apply after a restart.
    pub namespace: Option<String>,
    /// How long others wait after the last renewal of a Lease that they saw.
    /// Changes apply after a restart.
    pub lease_duration: Duration,
    /// How long a leader continues after its last successful renewal.
    /// Changes apply after a restart.
    pub renew_deadline: Duration,
    /// The pause between attempts to acquire or to renew the Lease. Changes apply after a restart.
    pub retry_period: Duration,
    /// How many ranges the objects are shared by; not changed after the first start.
    /// Changes apply after a restart.
    pub ranges: u32,
    /// By which field they are shared. Changes apply after a restart.
    pub shard_field: ShardField,
}

/// What replicas do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LeadershipMode {
    /// There is one replica, which always acts.
    #[default]
    Alone,
    /// One leads, the others stand by.
    Standby,
    /// Each one has a share of the objects.
    Shards,
}

impl Leadership {
    /// The times of the Leases.
    ///
    /// # Errors
    /// Fails when they are of no use together.
    pub fn times(&self) -> Result<Times, TimesError> {
        let Self { lease_duration, renew_deadline, retry_period, .. } = *self;
        let times = Times { lease_duration, renew_deadline, retry_period };
        times.check().map(|()| times)
    }
}

impl Default for Leadership {
    fn default() -> Self {
        let Times { lease_duration, renew_deadline, retry_period } = Times::DEFAULT;
        Self {
            mode: LeadershipMode::Alone,
            name: None,
            namespace: None,
            lease_duration,
            renew_deadline,
            retry_period,
            ranges: 64,
            shard_field: ShardField::Uid,
        }
    }
}
