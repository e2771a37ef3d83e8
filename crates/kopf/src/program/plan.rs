//! `plan`: shows what would be done about desired children, without doing it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use kopf_core::HandlerKind;
use kopf_core::desired::Readiness;
use kopf_engine::{Action, Proposal, Rehearsal};

use serde_json::{Value, json};

use super::Failure;
use super::output::OutputArguments;
use crate::{Config, Operator};

/// How often to check whether all objects are processed.
const POLLING: Duration = Duration::from_millis(50);
/// How long to wait until the cluster has sent all objects and their children.
const PATIENCE: Duration = Duration::from_secs(60);

/// Looks at every object once and prints what would be done.
pub(super) async fn run(
    operator: Operator,
    config: Config,
    output: &OutputArguments,
) -> Result<(), Failure> {
    let is_desired = |kind: &HandlerKind| matches!(kind, HandlerKind::Desired);
    if !operator.handlers().any(|handler| is_desired(&handler.kind)) {
        return Err(Failure::usage("the operator has no desired children to plan"));
    }
    let rehearsal = Rehearsal::default();
    let running = operator.rehearse(config, rehearsal.clone()).await?;
    let deadline = tokio::time::Instant::now() + PATIENCE;
    let mut is_calm = false;
    loop {
        tokio::time::sleep(POLLING).await;
        let status = running.status().snapshot();
        let was_calm = is_calm;
        is_calm = status.ready
            && status.work.queued == 0
            && status.work.running == 0
            && rehearsal.is_complete();
        if is_calm && was_calm {
            break;
        }
        if tokio::time::Instant::now() >= deadline || running.is_finished() {
            let _ = running.stop().await;
            return Err(Failure::from("the cluster did not show all objects and their children")
                .hint("`run` tells more: perhaps a kind is not there, or may not be watched"));
        }
    }
    running.stop().await?;
    let proposals = rehearsal.proposals();
    let document = output.text(|| document(&proposals))?;
    print!("{}", document.unwrap_or_else(|| text(&proposals)));
    Ok(())
}

/// The same as JSON: one entry per child.
fn document(owners: &BTreeMap<String, Vec<Proposal>>) -> Value {
    let entry = |owner: &str, Proposal { child, action }: &Proposal| {
        let (action, note) = match action {
            Action::Create => ("create", None),
            Action::Change(_) => ("change", None),
            Action::Delete => ("delete", None),
            Action::Refuse(why) => ("refuse", Some(why.clone())),
            Action::Keep(Readiness::Waiting(why)) => ("keep", Some(why.clone())),
            _ => ("keep", None),
        };
        json!({"owner": owner, "child": child, "action": action, "note": note})
    };
    let children = owners.iter().flat_map(|(owner, all)| all.iter().map(|it| entry(owner, it)));
    json!({"children": children.collect::<Vec<_>>()})
}

/// The whole text: what would be done about each child of each object, and the counts.
fn text(owners: &BTreeMap<String, Vec<Proposal>>) -> String {
    let mut text = String::new();
    let mut counts = [0_usize; 5];
    for (owner, proposals) in owners {
        let _infallible = writeln!(text, "{owner}");
        for Proposal { child, action } in proposals {
            let (number, sign, note) = match action {
                Action::Create => (0, '+', String::new()),
                Action::Change(_) => (1, '~', String::new()),
                Action::Delete => (2, '-', String::new()),
                Action::Refuse(why) => (3, '!', format!(": {why}")),
                Action::Keep(Readiness::Ready) => (4, '=', " (ready)".into()),
                Action::Keep(Readiness::Waiting(why)) => (4, '=', format!(" ({why})")),
                _ => (4, '=', String::new()),
            };
            counts[number] += 1;
            let _infallible = writeln!(text, "  {sign} {child}{note}");
            let Action::Change(diff) = action else { continue };
            for item in diff.iter() {
                let (old, new) = (short(item.old.as_ref()), short(item.new.as_ref()));
                let _infallible = writeln!(text, "      {}: {old} -> {new}", item.field);
            }
        }
    }
    let [create, change, delete, refuse, keep] = counts;
    let _infallible = writeln!(
        text,
        "{} objects: {create} children to create, {change} to change, {delete} to delete, \
         {refuse} impossible, {keep} as they are.",
        owners.len()
    );
    text
}

fn short(value: Option<&serde_json::Value>) -> String {
    const SHOWN_MAX: usize = 100;
    let Some(value) = value else { return "nothing".into() };
    let text = value.to_string();
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests;
