//! The kernel's data about a process: its memory and its processor time.

use std::time::Duration;

use anyhow::{Context, Result};

/// The resident memory in bytes.
pub(super) fn resident_bytes(process: u32) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).context("no VmRSS line")?;
    let kilobytes = line.split_whitespace().nth(1).context("no number in VmRSS")?;
    Ok(kilobytes.parse::<f64>()? * 1024.0)
}

/// The processor time of all threads so far.
pub(super) fn processor_time(process: u32) -> Result<Duration> {
    let mut nanoseconds = 0;
    for thread in std::fs::read_dir(format!("/proc/{process}/task"))? {
        let text = std::fs::read_to_string(thread?.path().join("schedstat"))?;
        let first = text.split_whitespace().next().context("an empty schedstat")?;
        nanoseconds += first.parse::<u64>()?;
    }
    Ok(Duration::from_nanos(nanoseconds))
}
