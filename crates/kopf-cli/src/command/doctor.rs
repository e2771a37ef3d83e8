//! `kopf doctor`: checks everything that has to work, reports problems and suggests fixes.
//!
//! The checks are in `tools`, `project` and `cluster`; each returns findings. This file prints
//! them.

mod cluster;
mod project;
mod tools;

use std::fmt::Write as _;

use clap::Args;
use serde::Serialize;
use serde_json::json;

use super::output::Output;
use crate::failure::{EXIT_FAILED, Failure};

/// The arguments of `kopf doctor`.
#[derive(Args)]
pub(super) struct Arguments {
    /// The context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// How to show the findings
    #[arg(long, short, value_enum, default_value_t)]
    output: Output,
}

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    /// It works.
    Ok,
    /// It may be intended, or not.
    Note,
    /// It does not work.
    Wrong,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Finding {
    /// What was checked.
    subject: String,
    verdict: Verdict,
    /// The result.
    text: String,
    /// How to fix it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl Finding {
    fn ok(subject: &str, text: impl Into<String>) -> Self {
        Self { subject: subject.into(), verdict: Verdict::Ok, text: text.into(), hint: None }
    }

    fn note(subject: &str, text: impl Into<String>, hint: impl Into<String>) -> Self {
        let hint = Some(hint.into());
        Self { subject: subject.into(), verdict: Verdict::Note, text: text.into(), hint }
    }

    fn wrong(subject: &str, text: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { verdict: Verdict::Wrong, ..Self::note(subject, text, hint) }
    }
}

/// Runs all checks; the exit code says whether something is wrong.
pub(super) async fn run(arguments: &Arguments) -> Result<u8, Failure> {
    let mut findings = tools::check();
    findings.extend(project::check());
    findings.extend(cluster::check(arguments.context.as_deref()).await);
    let is_wrong = findings.iter().any(|finding| finding.verdict == Verdict::Wrong);
    let document = json!({"healthy": !is_wrong, "findings": findings});
    let text = arguments.output.text(&document)?;
    print!("{}", text.unwrap_or_else(|| table(&findings)));
    Ok(if is_wrong { EXIT_FAILED } else { 0 })
}

/// The findings as text; readable without colours.
fn table(findings: &[Finding]) -> String {
    let width = findings.iter().map(|finding| finding.subject.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for Finding { subject, verdict, text: found, hint } in findings {
        let sign = match verdict {
            Verdict::Ok => "ok   ",
            Verdict::Note => "note ",
            Verdict::Wrong => "WRONG",
        };
        let _infallible = writeln!(text, "{sign}  {subject:<width$}  {found}");
        if let Some(hint) = hint {
            let _infallible = writeln!(text, "       {:<width$}  hint: {hint}", "");
        }
    }
    let wrong = findings.iter().filter(|finding| finding.verdict == Verdict::Wrong).count();
    text + &match wrong {
        0 => "\nEverything that was checked works.\n".to_owned(),
        1 => "\n1 thing does not work.\n".to_owned(),
        count => format!("\n{count} things do not work.\n"),
    }
}

#[cfg(test)]
mod tests;
