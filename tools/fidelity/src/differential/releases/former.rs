//! Which steps are equal to the release that the subject follows, from the report of that run.
//!
//! Responsible for reading what `report` writes. Unknown scripts count as different, so that nothing
//! is explained by a release unless somebody has compared it with the former one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, ensure};

/// The steps of one script that were not equal.
#[derive(Default)]
struct Unequal {
    steps: BTreeSet<usize>,
    /// The report has no room for further steps that were not equal.
    is_cut: bool,
}

/// The scripts of the report.
#[derive(Default)]
pub(crate) struct Former(BTreeMap<String, Unequal>);

impl Former {
    /// Reads the report, whose judge must be of the release that `subject` follows.
    pub(crate) fn read(path: &Path, subject: &str) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("could not read `{}`", path.display()))?;
        let judge = text.lines().find_map(|line| line.strip_prefix("| judge | "));
        let judge = judge.and_then(|line| line.strip_suffix(" |")).unwrap_or_default();
        ensure!(
            super::minor(judge).is_some() && super::minor(judge) == super::minor(subject),
            "`{}` is about `{judge}`, not about the release that the subject `{subject}` follows",
            path.display(),
        );
        Ok(Self::parse(&text))
    }

    pub(super) fn parse(text: &str) -> Self {
        let mut scripts = BTreeMap::new();
        let mut section = String::new();
        for line in text.lines() {
            if let Some(title) = line.strip_prefix("## ") {
                title.clone_into(&mut section);
            } else if let Some(name) = row_name(line).filter(|_| section == "Scripts") {
                scripts.insert(name.to_owned(), Unequal::default());
            } else if let Some(unequal) = scripts.get_mut(&section) {
                unequal.steps.extend(step_number(line));
                unequal.is_cut |= line.starts_with("And ") && line.ends_with(" more steps.");
            }
        }
        Self(scripts)
    }

    /// Whether the step, counted from 1, was equal.
    pub(super) fn is_equal(&self, script: &str, step: usize) -> bool {
        self.0.get(script).is_some_and(|unequal| {
            let last = unequal.steps.last().copied().unwrap_or_default();
            let is_unknown = unequal.is_cut && step > last;
            !unequal.steps.contains(&step) && !is_unknown
        })
    }
}

/// The name of the script in a row of the overview; the heading looks the same and does no harm.
fn row_name(line: &str) -> Option<&str> {
    line.strip_prefix("| ")?.split(" | ").next()
}

/// `12` of "12. `GET /x`".
fn step_number(line: &str) -> Option<usize> {
    let (number, request) = line.split_once(". ")?;
    request.starts_with('`').then(|| number.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::Former;
    use crate::differential::compare::{ScriptResult, StepResult, Verdict};
    use crate::differential::first_sight::FirstSight;
    use crate::differential::report::{Heading, render};

    fn report(verdicts: &[Verdict]) -> String {
        let step = |verdict: &Verdict| StepResult {
            request: "GET /x".to_owned(),
            verdict: *verdict,
            differences: vec![],
            sides: None,
        };
        let results = ["s", "random-1-x"].map(|name| ScriptResult {
            name: name.to_owned(),
            steps: verdicts.iter().map(step).collect(),
        });
        let heading = Heading { date: "d".into(), judge: "v1.33.1".into(), subject: "s".into() };
        render(&heading, &results, &FirstSight::default(), None)
    }

    #[test]
    fn unequal_steps_are_read_from_a_report() {
        let former = Former::parse(&report(&[Verdict::Equal, Verdict::TextOnly, Verdict::Equal]));
        assert!(former.is_equal("s", 1) && !former.is_equal("s", 2) && former.is_equal("s", 3));
        assert!(!former.is_equal("unknown", 1));
    }

    #[test]
    fn steps_after_a_cut_count_as_unequal() {
        let former = Former::parse(&report(&[Verdict::Different; 3]));
        assert!(!former.is_equal("random-1-x", 3), "the report shows two steps of random scripts");
    }

    #[test]
    fn a_report_about_another_release_is_refused() {
        let path = std::env::temp_dir().join(format!("kopf-former-{}", std::process::id()));
        std::fs::write(&path, report(&[Verdict::Equal])).unwrap();
        assert!(Former::read(&path, "v1.33.0+kopf-0.1.0").is_ok());
        assert!(Former::read(&path, "v1.34.0").is_err());
        std::fs::remove_file(path).unwrap();
    }
}
