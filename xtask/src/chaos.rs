//! `cargo xtask chaos`: runs an operator through edits, kills, frozen servers and lost definitions.
//!
//! Plays a seeded schedule of edits and faults to an operator whose handlers log every call outside
//! of the cluster. When everything has settled, the log is compared with the final state. Kopf can
//! be tested in the same way, on its own server with the same schedule.

mod api;
mod count;
mod driver;
mod faults;
mod fleet;
mod history;
mod judge;
mod operator;
mod proxy;
mod report;
mod run;
mod schedule;
mod server;
mod subject;
mod tokens;
mod watcher;
mod world;

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail, ensure};

use self::report::Heading;
use self::run::Outcome;
use self::schedule::Size;
use self::server::Server;
use self::subject::Subject;
use crate::cluster::target;

/// The arguments of `cargo xtask chaos`.
#[derive(clap::Args, Clone)]
pub(crate) struct Arguments {
    /// Use a real control plane, see `cargo xtask kube`.
    #[arg(long, conflicts_with = "embedded")]
    real: bool,
    /// Use the embedded server, as `kopf cluster` (the default).
    #[arg(long)]
    embedded: bool,
    /// How long edits and faults continue.
    #[arg(long, default_value_t = 5.0)]
    minutes: f64,
    /// Try this operator with the same schedule, too.
    #[arg(long, value_enum, value_name = "OPERATOR")]
    beside: Option<Subject>,
    /// Try only this operator.
    #[arg(long, value_enum, value_name = "OPERATOR", conflicts_with = "beside")]
    only: Option<Subject>,
    /// Try the operators at the same time instead of one after another.
    #[arg(long)]
    at_once: bool,
    /// The schedule follows from this number.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many edits are made per second, on average.
    #[arg(long, default_value_t = 2.0)]
    edits_per_second: f64,
    /// How many objects there are at most.
    #[arg(long, default_value_t = 30)]
    objects: usize,
    /// Use the programs as they were built before.
    #[arg(long)]
    no_build: bool,
    /// Try this many replicas of our operator, which fail one after another.
    #[arg(long, value_name = "N", conflicts_with_all = ["beside", "only"])]
    replicas: Option<usize>,
    /// How replicas agree.
    #[arg(long, value_enum, default_value = "shards")]
    mode: fleet::Mode,
    /// Only kill replicas, and count side effects; beside it, with controller-runtime.
    #[arg(long, requires = "replicas")]
    count: bool,
    /// Stop the replicas with SIGTERM instead of killing them.
    #[arg(long, requires = "count")]
    stop: bool,
    /// The duration of Leases in seconds; other times in proportion.
    #[arg(long, requires = "count", default_value_t = 15.0)]
    lease: f64,
    /// Write a report to be committed.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

impl Arguments {
    /// The short version for every submission: a minute on the embedded server.
    pub(crate) fn short() -> Self {
        Self {
            real: false,
            embedded: true,
            minutes: 1.0,
            beside: None,
            only: None,
            at_once: false,
            seed: 1,
            edits_per_second: 4.0,
            objects: 12,
            no_build: false,
            replicas: None,
            mode: fleet::Mode::Shards,
            count: false,
            stop: false,
            lease: 15.0,
            report: None,
        }
    }

    fn subjects(&self) -> Vec<Subject> {
        let mut subjects = vec![self.only.unwrap_or(Subject::Ours)];
        subjects.extend(self.beside);
        subjects.dedup();
        subjects
    }

    fn size(&self) -> Size {
        Size {
            seed: self.seed,
            length: Duration::from_secs_f64(self.minutes * 60.0),
            edits_per_second: self.edits_per_second,
            slots: self.objects,
        }
    }
}

/// Plays the schedule to each operator, and fails if ours violated a property.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    ensure!(arguments.minutes > 0.0, "`--minutes` must be positive");
    ensure!(arguments.edits_per_second > 0.0, "`--edits-per-second` must be positive");
    ensure!(arguments.objects > 0, "`--objects` must be positive");
    let subjects = arguments.subjects();
    if let Some(count) = arguments.replicas.filter(|_| arguments.count) {
        return run_count(arguments, count);
    }
    if !arguments.no_build {
        subject::build()?;
    }
    if let Some(count) = arguments.replicas {
        return run_fleet(arguments, count);
    }
    for subject in &subjects {
        subject.install()?;
    }
    let outcomes = if arguments.at_once {
        play_at_once(arguments, &subjects)?
    } else {
        subjects.iter().map(|subject| play(arguments, *subject)).collect::<Result<_>>()?
    };
    println!("{}", report::table(&outcomes));
    for outcome in outcomes.iter().filter(|outcome| !outcome.findings.is_empty()) {
        println!("Violations of {}:\n{}", outcome.subject.name(), report::findings(outcome));
    }
    if let Some(path) = &arguments.report {
        let former = std::fs::read_to_string(path).unwrap_or_default();
        let text = report::report(&heading(arguments), &outcomes) + report::kept(&former);
        let complaint = || format!("could not write `{}`", path.display());
        std::fs::write(path, text).with_context(complaint)?;
    }
    let is_ours = |outcome: &&Outcome| outcome.subject == Subject::Ours;
    let violations: usize =
        outcomes.iter().filter(is_ours).map(|outcome| outcome.findings.len()).sum();
    if violations > 0 {
        let folder = target().join("chaos").join(Subject::Ours.slug());
        bail!("{violations} violations; logs are in `{}`", folder.display());
    }
    Ok(())
}

/// Runs several replicas of our operator on a new server.
fn run_fleet(arguments: &Arguments, count: usize) -> Result<()> {
    ensure!(count > 0, "`--replicas` must be positive");
    let folder = fresh_folder("replicas")?;
    subject::copy(&folder)?;
    let (minutes, replicas) = (arguments.minutes, (arguments.mode, count));
    println!("── chaos for {count} replicas: {minutes} minutes, seed {}", arguments.seed);
    let server = if arguments.real {
        Server::real(&format!("chaos-replicas-{}", std::process::id()))?
    } else {
        Server::embedded(&folder)?
    };
    let runtime = crate::http::runtime()?;
    let run = fleet::play(server, replicas, arguments.size(), &folder, arguments.real);
    let outcome = runtime.block_on(run).context("chaos for replicas")?;
    let text = fleet::report(&heading(arguments), replicas, &outcome);
    println!("{text}");
    if let Some(path) = &arguments.report {
        let complaint = || format!("could not write `{}`", path.display());
        let former = std::fs::read_to_string(path).unwrap_or_default();
        let text = format!("# Chaos with replicas\n\n{text}{}", report::kept(&former));
        std::fs::write(path, text).with_context(complaint)?;
    }
    let violations = outcome.findings.len();
    ensure!(violations == 0, "{violations} violations; logs are in `{}`", folder.display());
    Ok(())
}

/// Runs the counting operators at the same time, each with its own objects.
fn run_count(arguments: &Arguments, replicas: usize) -> Result<()> {
    ensure!(arguments.real, "`--count` needs `--real`");
    if !arguments.no_build {
        count::build()?;
    }
    let folder = fresh_folder("count")?;
    count::copy(&folder)?;
    let server = Server::real(&format!("chaos-count-{}", std::process::id()))?;
    let Size { seed, length, edits_per_second, slots: objects } = arguments.size();
    let (is_gentle, lease) = (arguments.stop, Duration::from_secs_f64(arguments.lease));
    let plan = count::Plan { replicas, objects, length, edits_per_second, seed, is_gentle, lease };
    let kubeconfig = server.kubeconfig().context("a real server has a kubeconfig")?;
    let stage = count::Stage { endpoint: &server.endpoint, kubeconfig, folder: &folder, plan };
    let [first, second, third] = count::Team::ALL.map(|team| stage.play(team));
    let verdicts = crate::http::runtime()?.block_on(async {
        tokio::select! {
            verdicts = async { tokio::try_join!(first, second, third) } => verdicts,
            () = run::interrupted() => bail!("interrupted"),
        }
    })?;
    let verdicts = [verdicts.0, verdicts.1, verdicts.2];
    let lease = arguments.lease;
    let size = format!("{replicas} replicas, {objects} objects each, Leases of {lease} s");
    let text = count::report(&heading(arguments), &size, &verdicts);
    println!("{text}");
    if let Some(path) = &arguments.report {
        let complaint = || format!("could not write `{}`", path.display());
        std::fs::write(path, text).with_context(complaint)?;
    }
    let violations: usize = verdicts.iter().map(count::Verdict::violations).sum();
    ensure!(violations == 0, "{violations} violations; the files are in `{}`", folder.display());
    Ok(())
}

/// An empty folder for the files of a run.
fn fresh_folder(name: &str) -> Result<PathBuf> {
    let folder = target().join("chaos").join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

fn play_at_once(arguments: &Arguments, subjects: &[Subject]) -> Result<Vec<Outcome>> {
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            subjects.iter().map(|subject| scope.spawn(move || play(arguments, *subject))).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, Result<Outcome>>| {
            thread.join().unwrap_or_else(|_| bail!("a run panicked"))
        };
        threads.into_iter().map(join).collect()
    })
}

/// Runs one operator on a new server.
fn play(arguments: &Arguments, subject: Subject) -> Result<Outcome> {
    let folder = fresh_folder(subject.slug())?;
    subject::copy(&folder)?;
    let minutes = arguments.minutes;
    println!("── chaos for {}: {minutes} minutes, seed {}", subject.name(), arguments.seed);
    let server = if arguments.real {
        // Other runs may use the same name at the same time.
        Server::real(&format!("chaos-{}-{}", subject.slug(), std::process::id()))?
    } else {
        Server::embedded(&folder)?
    };
    let runtime = crate::http::runtime()?;
    let run = run::play(subject, server, arguments.size(), &folder, arguments.real);
    runtime.block_on(run).with_context(|| format!("chaos for {}", subject.name()))
}

fn heading(arguments: &Arguments) -> Heading {
    let real = || crate::kube::version().map(|version| format!("kube-apiserver {version}"));
    Heading {
        server: match arguments.real {
            true => real().unwrap_or_else(|_| "a real kube-apiserver".to_owned()),
            false => "embedded server".to_owned(),
        },
        minutes: arguments.minutes,
        seed: arguments.seed,
        machine: crate::steps::machine(),
    }
}

/// Seconds since 1970.
fn now() -> f64 {
    SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs_f64()
}

/// Sends a signal, such as `STOP`, to a process that we have started.
fn signal(name: &str, pid: u32) -> Result<()> {
    let status = Command::new("kill").args(["-s", name, &pid.to_string()]).status()?;
    ensure!(status.success(), "could not send {name} to process {pid}");
    Ok(())
}
