//! `cargo xtask differential`: sends the same requests to two API servers.
//!
//! Responsible for which scripts run, how many at once, and where the report goes. The reference is
//! the real control plane by default.

pub(crate) mod compare;
pub(crate) mod first_sight;
pub(crate) mod random;
pub(crate) mod releases;
pub(crate) mod report;
pub(crate) mod runner;
pub(crate) mod script;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::http::{Client, Request};
use crate::kubeconfig::Endpoint;
use crate::subject::Subject;
use compare::{ScriptResult, Transcript};
use first_sight::FirstSight;
use releases::{Explained, Former};
use report::{Heading, Totals};
use runner::Runner;
use script::Script;

/// The maximum number of scripts that run in parallel, each in its own namespace.
const PARALLEL_MAX: usize = 4;

/// The arguments of `cargo xtask differential`.
#[derive(Args)]
pub struct Arguments {
    /// Kubeconfig of the server that is right by definition
    /// [default: the control plane of `cargo xtask kube up`].
    #[arg(long)]
    judge: Option<PathBuf>,
    /// Kubeconfig of the server to be judged [default: starts `kopf cluster`].
    #[arg(long)]
    subject: Option<PathBuf>,
    /// A script, or a folder of scripts.
    #[arg(long)]
    scripts: Option<PathBuf>,
    /// Run only scripts whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// First seed of the random sequences.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many random sequences to run.
    #[arg(long, default_value_t = 40)]
    random: u64,
    /// Steps in each random sequence.
    #[arg(long, default_value_t = 40)]
    steps: usize,
    /// Where to write the report.
    #[arg(long)]
    report: Option<PathBuf>,
    /// Where to write every difference in full, as JSON lines.
    #[arg(long)]
    details: Option<PathBuf>,
    /// Note the results of scripts that have never run before as their first ones.
    #[arg(long)]
    first_sight: bool,
    /// Fail below this percentage of equal steps.
    #[arg(long, default_value_t = 0.0)]
    minimum: f64,
}

/// Compares the two servers; `judge` finds the kubeconfig of the real one if none is given.
///
/// # Errors
/// Fails if a server is unreachable, or if there are fewer equal steps than the minimum.
pub fn run(arguments: &Arguments, judge: impl FnOnce() -> Result<PathBuf>) -> Result<()> {
    let judge = match &arguments.judge {
        Some(path) => path.clone(),
        None => judge()?,
    };
    let subject = Subject::open(arguments.subject.as_deref())?;
    let pair = Pair { judge: Endpoint::from_file(&judge)?, subject: subject.endpoint.clone() };
    let scripts = choose(arguments)?;
    let runtime = crate::http::runtime()?;
    let (heading, mut results) = runtime.block_on(async {
        let heading = pair.heading().await?;
        anyhow::Ok((heading, run_all(&pair, scripts).await?))
    })?;
    let mut first_sight = FirstSight::read()?;
    if arguments.first_sight {
        first_sight.add(&results);
        first_sight.write()?;
    }
    let explained = releases::is_later(&heading.judge, &heading.subject)
        .then(|| explain(&heading, &mut results))
        .transpose()?;
    let text = report::render(&heading, &results, &first_sight, explained.as_ref());
    let target = arguments.report.clone().unwrap_or_else(default_report);
    if let Some(folder) = target.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(&target, text)
        .with_context(|| format!("could not write `{}`", target.display()))?;
    if let Some(path) = &arguments.details {
        std::fs::write(path, report::details(&results))
            .with_context(|| format!("could not write `{}`", path.display()))?;
    }
    let totals = Totals::of(&results);
    println!(
        "{} of {} steps equal ({:.1} %), {} more but for wording, {} but for the release; see {}",
        totals.equal,
        totals.steps,
        totals.percent(),
        totals.text_only,
        totals.other_release,
        target.display(),
    );
    if totals.percent() < arguments.minimum {
        bail!("less than {} % of the steps are equal", arguments.minimum);
    }
    Ok(())
}

/// Explains by the release of the judge what is equal to the release that the subject follows.
fn explain(heading: &Heading, results: &mut [ScriptResult]) -> Result<Explained> {
    let former = Former::read(&default_report(), &heading.subject)?;
    Ok(releases::explain(results, &former))
}

/// The folder of the scripts that ship with the project.
pub(crate) fn shipped_scripts() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("scripts")
}

/// A namespace name that no earlier run has used.
pub(crate) fn fresh_namespace(index: usize, side: &str) -> String {
    let now = jiff::Timestamp::now().as_millisecond() % 100_000_000;
    format!("d{now:08}{side}{index:03}")
}

fn default_report() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/fidelity/differential.md")
}

fn choose(arguments: &Arguments) -> Result<Vec<Script>> {
    let folder = arguments.scripts.clone().unwrap_or_else(shipped_scripts);
    let mut scripts = script::read_all(&folder)?;
    let seeds = arguments.seed..arguments.seed + arguments.random;
    scripts.extend(seeds.map(|seed| random::script(seed, arguments.steps)));
    scripts.retain(|script| script.name.contains(&arguments.only));
    Ok(scripts)
}

#[derive(Clone)]
struct Pair {
    judge: Endpoint,
    subject: Endpoint,
}

impl Pair {
    async fn heading(&self) -> Result<Heading> {
        Ok(Heading {
            date: jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M UTC").to_string(),
            judge: version(&self.judge).await.context("the judge does not answer")?,
            subject: version(&self.subject).await.context("the subject does not answer")?,
        })
    }

    async fn run(&self, script: &Script, index: usize) -> Result<ScriptResult> {
        let name = fresh_namespace(index, "a");
        // Some responses hash the names of groups, so the names are equal if possible.
        let is_same = self.judge.server == self.subject.server;
        let other = if is_same { fresh_namespace(index, "b") } else { name.clone() };
        let (judge, subject) = tokio::join!(
            transcribe(&self.judge, script, name),
            transcribe(&self.subject, script, other),
        );
        let judge = judge.context("on the judge")?;
        let subject = subject.context("on the subject")?;
        Ok(compare::compare(script, &judge, &subject))
    }
}

async fn run_all(pair: &Pair, scripts: Vec<Script>) -> Result<Vec<ScriptResult>> {
    let mut results = Vec::new();
    let mut tasks = JoinSet::new();
    for (index, script) in scripts.into_iter().enumerate() {
        if tasks.len() >= PARALLEL_MAX {
            results.extend(finished(&mut tasks).await?);
        }
        let pair = pair.clone();
        tasks.spawn(async move {
            let result = pair.run(&script, index).await;
            result.map(|result| (index, result)).with_context(|| format!("script {}", script.name))
        });
    }
    while !tasks.is_empty() {
        results.extend(finished(&mut tasks).await?);
    }
    results.sort_by_key(|(index, _)| *index);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

type Tasks = JoinSet<Result<(usize, ScriptResult)>>;

async fn finished(tasks: &mut Tasks) -> Result<Option<(usize, ScriptResult)>> {
    tasks.join_next().await.transpose()?.transpose()
}

async fn transcribe(endpoint: &Endpoint, script: &Script, namespace: String) -> Result<Transcript> {
    let mut runner = Runner::start(endpoint.clone(), &namespace).await?;
    let exchanges = runner.run(script).await;
    runner.finish(script).await?;
    Ok(Transcript { namespace, exchanges })
}

async fn version(endpoint: &Endpoint) -> Result<String> {
    let answer = Client::new(endpoint.clone())?.send(&Request::get("/version")).await?;
    let version: Value = serde_json::from_slice(&answer.body)?;
    Ok(version["gitVersion"].as_str().unwrap_or("unknown").to_owned())
}
