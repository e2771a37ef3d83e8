//! The result of each script's first run, before anything was fixed for it.
//!
//! Responsible for the file `differential/first-sight.json`. It only grows, so that the report can
//! show how equal the servers are for new requests.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::compare::{ScriptResult, Verdict};

/// The counts of one first run.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct FirstRun {
    pub(crate) steps: usize,
    pub(crate) equal: usize,
    pub(crate) wording: usize,
}

/// First runs by the name of the script.
#[derive(Default)]
pub(crate) struct FirstSight(BTreeMap<String, FirstRun>);

impl FirstSight {
    pub(crate) fn read() -> Result<Self> {
        let path = path();
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("could not read `{}`", path.display()))?;
        let runs = serde_json::from_str(&text);
        Ok(Self(runs.with_context(|| format!("in `{}`", path.display()))?))
    }

    /// Adds new scripts; the others keep their first result.
    pub(crate) fn add(&mut self, results: &[ScriptResult]) {
        for result in results {
            self.0.entry(result.name.clone()).or_insert_with(|| FirstRun {
                steps: result.steps.len(),
                equal: result.count(Verdict::Equal),
                wording: result.count(Verdict::TextOnly),
            });
        }
    }

    pub(crate) fn write(&self) -> Result<()> {
        let mut text = String::from("{\n");
        for (index, (name, run)) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { ",\n" };
            text += &format!("{separator}  \"{name}\": {}", serde_json::to_string(run)?);
        }
        text += "\n}\n";
        std::fs::write(path(), text).context("could not write the results of first runs")
    }

    pub(crate) fn of(&self, script: &str) -> Option<FirstRun> {
        self.0.get(script).copied()
    }

    /// The totals of handwritten scripts and of random ones.
    pub(crate) fn totals(&self) -> [FirstRun; 2] {
        let sum = |is_random: bool| {
            let runs = self.0.iter().filter(|(name, _)| name.starts_with("random-") == is_random);
            runs.fold(FirstRun::default(), |sum, (_, run)| FirstRun {
                steps: sum.steps + run.steps,
                equal: sum.equal + run.equal,
                wording: sum.wording + run.wording,
            })
        };
        [sum(false), sum(true)]
    }
}

fn path() -> PathBuf {
    super::shipped_scripts().join("first-sight.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_result_stays() {
        let mut known = FirstSight::default();
        let first = FirstRun { steps: 4, equal: 1, wording: 0 };
        known.0.insert("s".to_owned(), first);
        known.add(&[ScriptResult { name: "s".to_owned(), steps: vec![] }]);
        known.add(&[ScriptResult { name: "random-1-x".to_owned(), steps: vec![] }]);
        assert_eq!(known.of("s"), Some(first));
        assert_eq!(known.totals(), [first, FirstRun::default()]);
    }
}
