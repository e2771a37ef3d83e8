//! The kernel's data about a running process: its memory and its processor time.

use std::path::PathBuf;
use std::process::Child;
use std::time::Duration;

use anyhow::{Context, Result};

/// The memory of a process, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    pub(crate) resident: f64,
    pub(crate) peak: f64,
}

/// A process that is killed when this value is dropped.
pub(crate) struct Process(pub(crate) Child);

impl Process {
    pub(crate) fn memory(&self) -> Result<Memory> {
        let status = std::fs::read_to_string(self.folder().join("status"))?;
        let kilobytes = |name: &str| -> Result<f64> {
            let line = status.lines().find(|line| line.starts_with(name)).context("no memory")?;
            let number = line.split_whitespace().nth(1).context("no number of kilobytes")?;
            Ok(number.parse::<f64>()? * 1024.0)
        };
        Ok(Memory { resident: kilobytes("VmRSS:")?, peak: kilobytes("VmHWM:")? })
    }

    /// The processor time of all threads, in microseconds.
    pub(crate) fn cpu_micros(&self) -> Result<f64> {
        let mut nanos = 0;
        for task in std::fs::read_dir(self.folder().join("task"))? {
            // A thread may end in the meantime.
            let Ok(text) = std::fs::read_to_string(task?.path().join("schedstat")) else {
                continue;
            };
            nanos += text.split_whitespace().next().unwrap_or("0").parse::<u64>()?;
        }
        let threads = Duration::from_nanos(nanos).as_secs_f64() * 1e6;
        Ok(threads.max(self.coarse_micros()?))
    }

    /// The same in kernel ticks, but including threads that have ended, as needed for Java.
    fn coarse_micros(&self) -> Result<f64> {
        const TICK_MICROS: f64 = 10_000.0;
        let stat = std::fs::read_to_string(self.folder().join("stat"))?;
        // The name of the program is in parentheses, and may contain anything.
        let (_, rest) = stat.rsplit_once(')').context("not a line of the kernel")?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let ticks = |index: usize| -> Result<f64> {
            Ok(fields.get(index).context("no processor time")?.parse()?)
        };
        Ok((ticks(11)? + ticks(12)?) * TICK_MICROS)
    }

    /// Waits until the process is idle, and returns its processor time.
    pub(crate) fn settle(&self) -> Result<f64> {
        const STEP: Duration = Duration::from_millis(150);
        const IDLE_MICROS: f64 = 1500.0;
        const STEPS_MAX: usize = 600;
        let mut before = self.cpu_micros()?;
        let mut quiet = 0;
        for _ in 0..STEPS_MAX {
            std::thread::sleep(STEP);
            let after = self.cpu_micros()?;
            quiet = if after - before < IDLE_MICROS { quiet + 1 } else { 0 };
            before = after;
            if quiet == 2 {
                return Ok(after);
            }
        }
        anyhow::bail!("the process does not come to rest")
    }

    fn folder(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}", self.0.id()))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Ignored: the process may be gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
