//! The machine under a measurement: separate cores for each side, and no other load.

#[cfg(target_os = "linux")]
mod cores;

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

#[cfg(target_os = "linux")]
pub(crate) use self::cores::{on_cores_of, split_cores};

/// The process to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Server,
    Operator,
}

/// Only Linux supports this.
#[cfg(not(target_os = "linux"))]
pub(crate) fn split_cores() -> Result<()> {
    println!("the server and the operators share all cores");
    Ok(())
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn on_cores_of<T>(_: Side, start: impl FnOnce() -> T) -> Result<T> {
    Ok(start())
}

/// Waits until the machine is idle; prints a message if it never is.
///
/// The load average would still include the previous measurement.
pub(crate) fn wait_for_quiet() -> Result<()> {
    const STEP: Duration = Duration::from_millis(200);
    const PATIENCE: Duration = Duration::from_secs(60);
    const BUSY_MAX: f64 = 0.1;
    let waiting = Instant::now();
    loop {
        let before = Ticks::now()?;
        std::thread::sleep(STEP);
        let busy = Ticks::now()?.busy_since(&before);
        if busy <= BUSY_MAX {
            return Ok(());
        }
        if waiting.elapsed() > PATIENCE {
            println!("the machine is {:.0} % busy: times will be too long", busy * 100.0);
            return Ok(());
        }
    }
}

/// The activity of all cores since boot, in kernel ticks.
#[derive(Debug, PartialEq)]
struct Ticks {
    total: f64,
    idle: f64,
}

impl Ticks {
    fn now() -> Result<Self> {
        Self::read(&std::fs::read_to_string("/proc/stat")?)
    }

    /// Parses the first line: user, nice, system, idle and iowait, then others.
    fn read(stat: &str) -> Result<Self> {
        let line = stat.lines().next().context("the kernel tells no times")?;
        let ticks =
            line.split_whitespace().skip(1).map(str::parse).collect::<Result<Vec<f64>, _>>();
        let ticks = ticks.with_context(|| format!("not times of the kernel: {line}"))?;
        let idle = ticks.iter().skip(3).take(2).sum();
        Ok(Self { total: ticks.iter().sum(), idle })
    }

    fn busy_since(&self, before: &Self) -> f64 {
        let total = self.total - before.total;
        if total > 0.0 { 1.0 - (self.idle - before.idle) / total } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_of_the_time_was_busy() -> Result<()> {
        let before = Ticks::read("cpu  10 0 10 100 5 0 0 0 0 0\ncpu0 1 2 3 4\n")?;
        let after = Ticks::read("cpu  20 0 20 155 10 0 0 0 0 0\n")?;
        assert!((after.busy_since(&before) - 0.25).abs() < 1e-9);
        assert!(Ticks::read("cpu  ten\n").is_err());
        Ok(())
    }
}
