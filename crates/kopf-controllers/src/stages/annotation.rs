//! Reads stages from Pod annotations: `kopf.dev/stage: crash,exit-code=2,after=5s`.
//!
//! The first word is one of `running`, `never-ready`, `complete`, `crash`, `image-pull-error`,
//! `unschedulable`; the options are `delay=`, `ready-after=`, `after=` (times such as `500ms`,
//! `5s`, `2m`, `1h`), `exit-code=`, `times=`, `reason=` and `stubborn`. The text of
//! `kopf.dev/logs` is what `kubectl logs` shows.

use std::str::FromStr;
use std::time::Duration;

use super::Stage;

/// Annotation with a stage.
pub(crate) const STAGE: &str = "kopf.dev/stage";
/// Annotation with the text of the logs.
pub(crate) const LOGS: &str = "kopf.dev/logs";

/// Why a text is not a valid stage.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseStageError {
    /// The first word is unknown.
    #[error(
        "unknown stage {0:?}, expected running, never-ready, complete, crash, image-pull-error or unschedulable"
    )]
    UnknownStage(String),
    /// An option is unknown.
    #[error("unknown option {0:?} of a stage")]
    UnknownOption(String),
    /// The value of an option is invalid.
    #[error("bad value {value:?} for option {option:?} of a stage")]
    BadValue {
        /// The option.
        option: String,
        /// Its value.
        value: String,
    },
}

impl FromStr for Stage {
    type Err = ParseStageError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.split(',').map(str::trim);
        let first = parts.next().unwrap_or_default();
        let mut stage = match first {
            "running" => Self::running(),
            "never-ready" => Self::never_ready(),
            "complete" => Self::complete(0),
            "crash" => Self::crash(1),
            "image-pull-error" => Self::image_pull_error(),
            "unschedulable" => Self::unschedulable(),
            other => return Err(ParseStageError::UnknownStage(other.to_owned())),
        };
        for part in parts {
            let (option, value) = part.split_once('=').unwrap_or((part, ""));
            let bad = || ParseStageError::BadValue { option: option.into(), value: value.into() };
            match option {
                "delay" => stage.delay = duration(value).ok_or_else(bad)?,
                "ready-after" => stage.ready_after = Some(duration(value).ok_or_else(bad)?),
                "after" => stage.end_mut().after = duration(value).ok_or_else(bad)?,
                "exit-code" => stage.end_mut().exit_code = value.parse().map_err(|_| bad())?,
                "times" => stage.end_mut().times = Some(value.parse().map_err(|_| bad())?),
                "reason" => stage.end_mut().reason = Some(value.to_owned()),
                "stubborn" => stage.is_stubborn = true,
                other => return Err(ParseStageError::UnknownOption(other.to_owned())),
            }
        }
        Ok(stage)
    }
}

fn duration(text: &str) -> Option<Duration> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    match unit {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_secs(number.checked_mul(60)?)),
        "h" => Some(Duration::from_secs(number.checked_mul(3600)?)),
        _ => None,
    }
}
