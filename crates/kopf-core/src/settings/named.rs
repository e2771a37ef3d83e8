//! Settings by Kopf's dotted names, for front ends whose settings are plain data.
//!
//! Times are seconds. Null means the absence of a limit where the setting has none, and the default
//! of the engine where it must have a value.

use std::time::Duration;

use kopf_model::shards::ShardField;
use serde_json::Value;

use super::{LeadershipMode, SelectorMapping, Settings};
use crate::log_line::Level;

/// Why a setting cannot be changed.
#[derive(Debug, thiserror::Error)]
pub enum SettingError {
    /// There is no such setting.
    #[error("there is no setting {0:?}")]
    Unknown(String),
    /// The value is of another type.
    #[error("settings.{name} must be {expected}, not {value}")]
    Invalid {
        /// The setting.
        name: String,
        /// What it takes.
        expected: &'static str,
        /// What was given.
        value: Value,
    },
}

/// A value with the name under which it was given.
struct Given<'a> {
    name: &'a str,
    value: &'a Value,
}

impl Settings {
    /// Changes one setting.
    ///
    /// ```
    /// let mut settings = kopf_core::Settings::default();
    /// settings.set("peering.priority", &100.into())?;
    /// assert_eq!(settings.peering.priority, 100);
    /// # Ok::<(), kopf_core::settings::SettingError>(())
    /// ```
    ///
    /// # Errors
    /// Fails when there is no such setting, or the value is of another type.
    pub fn set(&mut self, name: &str, value: &Value) -> Result<(), SettingError> {
        let given = Given { name, value };
        let (section, field) = name.split_once('.').unwrap_or((name, ""));
        match section {
            "process" => self.set_process(field, &given),
            "posting" => self.set_posting(field, &given),
            "peering" => self.set_peering(field, &given),
            "leadership" => self.set_leadership(field, &given),
            "snapshots" => self.set_snapshots(field, &given),
            "watching" => self.set_watching(field, &given),
            "queueing" => self.set_queueing(field, &given),
            "scanning" => self.set_scanning(field, &given),
            "execution" => self.set_execution(field, &given),
            "networking" => self.set_networking(field, &given),
            "persistence" => self.set_persistence(field, &given),
            "background" => self.set_background(field, &given),
            _ => Err(given.unknown()),
        }
    }

    fn set_process(&mut self, field: &str, given: &Given<'_>) -> Result<(), SettingError> {
        match field {
            "ultimate_exiting_timeout" => {
                self.process.ultimate_exiting_timeout = given.time_or_none()?;
            }
            _ => return Err(given.unknown()),
        }
        Ok(())
    }

    fn set_posting(&mut self, field: &str, given: &Given<'_>) -> Result<(), SettingError> {
        let posting = &mut self.posting;
        match field {
            "enabled" => posting.enabled = given.flag()?,
            "loggers" => posting.loggers = given.flag()?,
            "handlers" => posting.handlers = given.flag()?,
            "level" => posting.level = given.level()?,
            "default_backoffs" => posting.default_backoffs = given.times()?,
            "logging_backoffs" => posting.logging_backoffs = given.times()?,
            "worker_limit" => posting.worker_limit = given.count_or_none()?,
            "idle_timeout" => posting.idle_timeout = given.time()?,
            "reporting_component" => posting.reporting_component = given.text()?,
            "reporting_instance" => posting.reporting_instance = given.text()?,
            "event_name_prefix" => posting.event_name_prefix = given.text()?,
            "rate_per_second" => posting.rate_per_second = given.number()?,
            "queue_max" => posting.queue_max = given.count()?,
            "count_repeated" => posting.count_repeated = given.flag()?,
            _ => return Err(given.unknown()),
        }
        Ok(())
    }

    fn set_peering(&mut self, field: &str, given: &Given<'_>) -> Result<(), SettingError> {
        let peering = &mut self.peering;
        match field {
            "name" => peering.name = given.text()?,
            "priority" => {
                peering.priority = given.value.as_i64().ok_or_else(|| given.invalid("a number"))?;
            }
            "lifetime" => peering.lifetime = given.time()?,
            "stealth" => peering.stealth = given.flag()?,
            "mandatory" => peering.mandatory = given.flag()?,
            "standalone" => peering.standalone = given.flag()?,
            "clusterwide" => peering.clusterwide = given.flag()?,
            _ => return Err(given.unknown()),
        }
        Ok(())
    }

    fn set_leadership(&mut self, field: &str, given: &Given<'_>) -> Result<(), SettingError> {
        let leadership = &mut self.leadership;
        match field {
            "mode" => {
                leadership.mode = match given.text()?.as_str() {
                    "alone" => LeadershipMode::Alone,
                    "standby" => LeadershipMode::Standby,
                    "shards" => LeadershipMode::Shards,
                    _ => return Err(given.invalid("alone, standby or shards")),
                };
            }
            "name" => leadership.name = Some(given.text()?),
            "namespace" => leadership.namespace = Some(given.text()?),
            "lease_duration" => leadership.lease_duration = given.time()?,
            "renew_deadline" => leadership.renew_deadline = given.time()?,
            "retry_period" => leadership.retry_period = given.time()?,
            "ranges" => {
                let count = u32::try_from(given.count()?).ok().filter(|it| *it > 0);
                leadership.ranges = count.ok_or_else(|| given.invalid("a number of ranges"))?;
            }
            "shard_field" => {
                let field = ShardField::parse(&given.text()?);
                leadership.shard_field = field.ok_or_else(|| given.invalid("uid or namespace"))?;
            }
            _ => return Err(given.unknown()),
        }
        Ok(())
    }

    fn set_snapshots(&mut self, field: &str, given: &Given<'_>) -> Result<(), SettingError> {
        let snapshots = &mut self.snapshots;
        match field {
            "file" if given.value.is_null() => snapshots.file = None,
            "file" => snapshots.file = Some(given.text()?.into()),
            "interval" => snapshots.interval = given.time()?,
            "storages" if given.value.is_null() => snapshots.storages = None,
            "storages" => snapshots.storages = Some(given.text()?),
            _ => return Err(given.unknown()),
        }
        Ok(())
    }

    fn set_watching(&mut self, field: &str, given: &Given<'_>) -> Result<(), SettingError> {
        let watching = &mut self.watching;
        match field {
            "server_timeout" => watching.server_timeout = given.time_or_none()?,
            "client_timeout" => watching.client_timeout = given.time_or_none()?,
            "connect_timeout" => watching.connect_timeout = given.time_or_none()?,
            "reconnect_backoff" => watching.reconnect_backoff = given.time()?,
            "reconnect_backoff_max" => watching.reconnect_backoff_max = given.time()?,
            "inactivity_timeout" => watching.inactivity_timeout = given.time()?,
            "chunk_size" if given.value.is_null() => {}
            "chunk_size" => {
                let size = given.count()?;
                watching.chunk_size = Some(u32::try_from(size).unwrap_or(u32::MAX));
            }
            "initial_streaming" => watching.initial_streaming = given.flag()?,
            "backlog_max" => watching.backlog_max = given.count()?,
            "managed_fields" => watching.managed_fields = given.flag()?,
            _ => return Err(given.unknown()),
        }
        Ok(())
    }

    fn set_queueing(&mut self, field: &str, given: &Given<'_>) -> Result<(), SettingError> {
        let queueing = &mut self.queueing;
        match field {
            "worker_limit" => queueing.worker_limit = given.count_or_none()?,
            "idle_timeout" => queueing.idle_timeout = given.time()?,
            "exit_timeout" => queueing.exit_timeout = given.time()?,
            "error_delays" => queueing.error_delays = given.times()?,
            _ => return Err(given.unknown()),
        }
        Ok(())
    }

    fn set_scanning(&mut self, field: &str, given: &Given<'_>) -> Result<(), SettingError> {
        match field {
            "disabled" => self.scanning.disabled = given.flag()?,
            _ => return Err(given.unknown()),
        }
        Ok(())
    }

    fn set_execution(&mut self, field: &str, given: &Given<'_>) -> Result<(), SettingError> {
        match field {
            "default_backoff" => self.execution.default_backoff = given.time()?,
            "max_workers" if given.value.is_null() => {}
            "max_workers" => self.execution.max_workers = given.count()?,
            "rerun_outdated" => self.execution.rerun_outdated = given.flag()?,
            _ => return Err(given.unknown()),
        }
        Ok(())
    }

    fn set_networking(&mut self, field: &str, given: &Given<'_>) -> Result<(), SettingError> {
        let networking = &mut self.networking;
        match field {
            "request_timeout" if given.value.is_null() => {
                networking.request_timeout = Duration::MAX;
            }
            "request_timeout" => networking.request_timeout = given.time()?,
            "connect_timeout" => networking.connect_timeout = given.time_or_none()?,
            "error_backoffs" => networking.error_backoffs = given.times()?,
            "enforce_retry_after" => networking.enforce_retry_after = given.flag()?,
            "trust_env" => networking.trust_env = given.flag()?,
            "concurrent_writes_max" => networking.concurrent_writes_max = given.count()?,
            _ => return Err(given.unknown()),
        }
        Ok(())
    }

    fn set_persistence(&mut self, field: &str, given: &Given<'_>) -> Result<(), SettingError> {
        let persistence = &mut self.persistence;
        match field {
            "finalizer" => persistence.finalizer = given.text()?,
            "consistency_timeout" => persistence.consistency_timeout = given.time()?,
            "persist_after" => persistence.persist_after = given.time()?,
            "field_manager" => persistence.field_manager = given.text()?,
            _ => return Err(given.unknown()),
        }
        Ok(())
    }

    fn set_background(&mut self, field: &str, given: &Given<'_>) -> Result<(), SettingError> {
        let background = &mut self.background;
        match field {
            "cancellation_polling" => background.cancellation_polling = given.time()?,
            "instant_exit_timeout" => background.instant_exit_timeout = given.time_or_none()?,
            "instant_exit_zero_time_cycles" => {
                background.instant_exit_zero_time_cycles = given.count_or_none()?.unwrap_or(0);
            }
            "timer_spread_max" => background.timer_spread_max = given.time()?,
            _ => return Err(given.unknown()),
        }
        Ok(())
    }
}

impl SelectorMapping {
    /// Drops all texts.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

impl Given<'_> {
    fn unknown(&self) -> SettingError {
        SettingError::Unknown(self.name.to_owned())
    }

    fn invalid(&self, expected: &'static str) -> SettingError {
        SettingError::Invalid { name: self.name.to_owned(), expected, value: self.value.clone() }
    }

    fn flag(&self) -> Result<bool, SettingError> {
        self.value.as_bool().ok_or_else(|| self.invalid("true or false"))
    }

    fn text(&self) -> Result<String, SettingError> {
        self.value.as_str().map(str::to_owned).ok_or_else(|| self.invalid("a text"))
    }

    fn number(&self) -> Result<f64, SettingError> {
        self.value.as_f64().ok_or_else(|| self.invalid("a number"))
    }

    fn count(&self) -> Result<usize, SettingError> {
        let count = self.value.as_u64().and_then(|count| usize::try_from(count).ok());
        count.ok_or_else(|| self.invalid("a whole number"))
    }

    fn count_or_none(&self) -> Result<Option<usize>, SettingError> {
        if self.value.is_null() { Ok(None) } else { self.count().map(Some) }
    }

    fn time(&self) -> Result<Duration, SettingError> {
        let seconds = self.value.as_f64().ok_or_else(|| self.invalid("a number of seconds"))?;
        Duration::try_from_secs_f64(seconds).map_err(|_| self.invalid("a number of seconds"))
    }

    fn time_or_none(&self) -> Result<Option<Duration>, SettingError> {
        if self.value.is_null() { Ok(None) } else { self.time().map(Some) }
    }

    /// One pause or several.
    fn times(&self) -> Result<Vec<Duration>, SettingError> {
        let Value::Array(items) = self.value else { return Ok(vec![self.time()?]) };
        items.iter().map(|value| Given { value, ..*self }.time()).collect()
    }

    /// A number as in Python's `logging`.
    fn level(&self) -> Result<Level, SettingError> {
        Ok(match self.count()? {
            0..=10 => Level::Debug,
            11..=20 => Level::Info,
            21..=30 => Level::Warning,
            _ => Level::Error,
        })
    }
}

#[cfg(test)]
mod tests;
