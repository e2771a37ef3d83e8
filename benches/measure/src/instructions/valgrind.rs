//! Runs a program under valgrind, and reads the counts.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::cluster::target;
use crate::engine::process::Process;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    Instructions,
    Allocations,
}

/// A program under valgrind.
pub(super) struct Watched {
    pub(super) process: Process,
    tool: Tool,
    log: PathBuf,
}

impl Tool {
    pub(super) const ALL: [Self; 2] = [Self::Instructions, Self::Allocations];

    pub(super) fn unit(self) -> &'static str {
        match self {
            Self::Instructions => "instructions",
            Self::Allocations => "allocations",
        }
    }

    /// The number in valgrind's final output.
    pub(super) fn read(self, log: &str) -> Result<f64> {
        let (before, after) = match self {
            // ==1== Collected : 123456
            Self::Instructions => ("Collected : ", ""),
            // ==1== Total:     1,234 bytes in 56 blocks
            Self::Allocations => (" bytes in ", " blocks"),
        };
        let is_total = |line: &&str| self == Self::Instructions || line.contains("Total:");
        let number = log
            .lines()
            .filter(is_total)
            .find_map(|line| line.split_once(before)?.1.strip_suffix(after))
            .with_context(|| format!("valgrind counted no {}: {log}", self.unit()))?;
        number.replace(',', "").trim().parse().context("not a count of valgrind")
    }
}

impl Watched {
    /// Starts one of the programs of the benchmark.
    pub(super) fn start(
        tool: Tool,
        program: &str,
        arguments: &[&str],
        environment: &[(&str, &std::ffi::OsStr)],
    ) -> Result<Self> {
        let log = target().join(format!("valgrind-{}.log", std::process::id()));
        let mut command = Command::new("valgrind");
        match tool {
            Tool::Instructions => {
                command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            }
            Tool::Allocations => command.args(["--tool=dhat", "--dhat-out-file=/dev/null"]),
        };
        command.arg(format!("--log-file={}", log.display()));
        command.arg(target().join("release").join(program)).args(arguments);
        command.envs(environment.iter().copied()).stdout(Stdio::null());
        let child = command.spawn().context("could not start valgrind")?;
        Ok(Self { process: Process(child), tool, log })
    }

    /// Asks the program to end, and returns the count.
    pub(super) fn stop(mut self) -> Result<f64> {
        let id = self.process.0.id().to_string();
        let asked = Command::new("kill").args(["-TERM", &id]).status()?;
        ensure!(asked.success(), "the measured program is gone");
        self.wait()
    }

    /// Waits for the end, and returns the count.
    pub(super) fn wait(&mut self) -> Result<f64> {
        let status = self.process.0.wait()?;
        let log = std::fs::read_to_string(&self.log)?;
        ensure!(status.success(), "the measured program failed ({status}): {log}");
        self.tool.read(&log)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_found_in_the_logs_of_both_tools() -> Result<()> {
        let callgrind = "==1== Events    : Ir\n==1== Collected : 7654321\n==1== \n";
        assert!((Tool::Instructions.read(callgrind)? - 7_654_321.0).abs() < 0.5);
        let dhat = "==1== Total:     1,600 bytes in 1,012 blocks\n\
                    ==1== At t-gmax: 400 bytes in 7 blocks\n";
        assert!((Tool::Allocations.read(dhat)? - 1012.0).abs() < 0.5);
        assert!(Tool::Instructions.read(dhat).is_err());
        Ok(())
    }
}
