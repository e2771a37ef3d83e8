//! The committed numbers.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::valgrind::Tool;
use crate::steps::root;

/// The tolerated difference in percent. Threads are scheduled differently in every run.
const TOLERANCE: f64 = 3.0;
/// The tolerated difference of allocations: absolute, since there are few.
const TOLERANCE_ALLOCATIONS: f64 = 1.5;

/// The file.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Ledger {
    machine: String,
    rows: BTreeMap<String, BTreeMap<String, f64>>,
}

/// The result of comparing a count with the committed one.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    New,
    Same(f64),
    Better(f64),
    Worse(f64),
}

impl Ledger {
    pub(super) fn open() -> Result<Self> {
        match std::fs::read_to_string(path()) {
            Ok(text) => serde_json::from_str(&text).context("benches/instructions.json"),
            Err(_) => Ok(Self::default()),
        }
    }

    pub(super) fn compare(&self, case: &str, tool: Tool, counted: f64) -> Verdict {
        match self.rows.get(case).and_then(|row| row.get(tool.unit())) {
            None => Verdict::New,
            Some(committed) => Verdict::of(tool, *committed, counted),
        }
    }

    pub(super) fn set(&mut self, case: &str, tool: Tool, counted: f64) {
        let rounded = match tool {
            Tool::Instructions => (counted / 100.0).round() * 100.0,
            Tool::Allocations => (counted * 10.0).round() / 10.0,
        };
        self.rows.entry(case.to_owned()).or_default().insert(tool.unit().to_owned(), rounded);
    }

    pub(super) fn write(&mut self) -> Result<()> {
        self.machine = crate::machine();
        Ok(std::fs::write(path(), serde_json::to_string_pretty(self)? + "\n")?)
    }
}

impl Verdict {
    fn of(tool: Tool, committed: f64, counted: f64) -> Self {
        let tolerance = match tool {
            Tool::Instructions => committed * TOLERANCE / 100.0,
            Tool::Allocations => TOLERANCE_ALLOCATIONS,
        };
        match counted - committed {
            more if more > tolerance => Self::Worse(committed),
            more if more < -tolerance => Self::Better(committed),
            _ => Self::Same(committed),
        }
    }

    pub(super) fn line(&self, tool: Tool, counted: f64) -> String {
        let (committed, word) = match self {
            Self::New => (None, "new"),
            Self::Same(committed) => (Some(*committed), ""),
            Self::Better(committed) => (Some(*committed), "better"),
            Self::Worse(committed) => (Some(*committed), "WORSE"),
        };
        let digits = usize::from(tool == Tool::Allocations);
        let committed = committed.map_or_else(String::new, |it| format!("{it:.digits$}"));
        format!("{counted:>14.digits$} {committed:>10} {word:>8} {}", tool.unit())
    }
}

fn path() -> PathBuf {
    root().join("benches").join("instructions.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_within_the_tolerance_are_the_same() {
        let of = Verdict::of;
        assert_eq!(of(Tool::Instructions, 100_000.0, 102_900.0), Verdict::Same(100_000.0));
        assert_eq!(of(Tool::Instructions, 100_000.0, 103_100.0), Verdict::Worse(100_000.0));
        assert_eq!(of(Tool::Instructions, 100_000.0, 96_000.0), Verdict::Better(100_000.0));
        assert_eq!(of(Tool::Allocations, 40.0, 42.0), Verdict::Worse(40.0));
        assert_eq!(of(Tool::Allocations, 40.0, 41.0), Verdict::Same(40.0));
    }
}
