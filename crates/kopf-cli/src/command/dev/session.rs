//! The loop of `kopf dev`: sources change, the project is built, the operator is restarted.
//!
//! Builds and the operator run concurrently and send news; signals are always handled.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use kopf_core::logtext::counted;
use kopf_engine::journal::Overview;
use kopf_ui::Operator;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::installing::{Description, Installing};
use super::logline;
use super::process::{Launch, Process};
use super::screen::Screen;
use super::sources::Sources;
use crate::command::project::{BuildError, Built, Diagnostic, Project, unused_handlers};
use crate::failure::Failure;

/// Editors save in several steps: a build starts after this much time without changes.
const QUIET: Duration = Duration::from_millis(50);
/// How often the operator's readiness is checked.
const READY_EVERY: Duration = Duration::from_millis(30);
/// How often the operator is polled for news.
const NEWS_EVERY: Duration = Duration::from_millis(300);
/// How often the area is redrawn without news.
const TICK: Duration = Duration::from_secs(1);
/// How often progress is printed if there is no area.
const PROGRESS_EVERY: Duration = Duration::from_secs(10);
/// The maximum number of compiler errors shown.
const ERRORS_MAX: usize = 8;
/// The exit code of programs that are interrupted, by convention.
const EXIT_INTERRUPTED: u8 = 130;

/// Something that happened outside of the loop.
pub(super) enum News {
    /// A source has changed.
    Changed { path: PathBuf, at: Instant },
    /// A crate was compiled.
    Compiled { count: usize, name: String },
    /// A build has ended.
    Built(Result<Built, BuildError>),
    /// The operator printed a line.
    Line { run: u64, line: String },
    /// The operator has listed all objects.
    Ready { run: u64 },
    /// Something happened to objects.
    Objects { run: u64, overview: Overview },
}

/// Everything that a session needs.
pub(super) struct Session {
    pub(super) project: Project,
    pub(super) kubeconfig: PathBuf,
    pub(super) is_embedded: bool,
    pub(super) probes: SocketAddr,
    pub(super) options: Vec<String>,
    pub(super) installing: Option<Installing>,
    pub(super) screen: Screen,
}

/// The state of a session.
struct Loop {
    session: Session,
    sender: mpsc::UnboundedSender<News>,
    process: Option<Process>,
    /// The number of the operator's run, to detect late news of a previous one.
    run: u64,
    asking: Option<AbortOnDropHandle<()>>,
    building: Option<Building>,
    pending: Option<Pending>,
    /// The time of the change that led to the current run.
    changed_at: Instant,
    started_at: Option<Instant>,
}

struct Building {
    _task: AbortOnDropHandle<()>,
    since: Instant,
    changed_at: Instant,
    told_at: Instant,
    compiled: usize,
}

/// Changes that have not been built yet.
struct Pending {
    first_at: Instant,
    /// When no change has happened for long enough.
    quiet_at: Instant,
    /// The last changed file; editors write to temporary files first.
    path: PathBuf,
}

/// The signals that request a stop.
struct Signals(Vec<Signal>);

impl Signals {
    fn new() -> std::io::Result<Self> {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        Ok(Self(kinds.into_iter().map(signal).collect::<Result<_, _>>()?))
    }

    async fn next(&mut self) {
        std::future::poll_fn(|context| {
            let is_any = self.0.iter_mut().any(|signal| signal.poll_recv(context).is_ready());
            if is_any { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
    }
}

impl Session {
    /// Runs until asked to stop; returns the exit code.
    pub(super) async fn run(self) -> Result<u8, Failure> {
        let (sender, mut news) = mpsc::unbounded_channel();
        let mut signals = Signals::new()?;
        let _sources = Sources::watch(&self.project.roots, sender.clone())
            .map_err(|error| Failure::new(error).hint("see `fs.inotify.max_user_watches`"))?;
        let now = Instant::now();
        let mut this = Loop {
            session: self,
            sender,
            process: None,
            run: 0,
            asking: None,
            building: None,
            pending: None,
            changed_at: now,
            started_at: None,
        };
        this.build(now);
        let mut tick = tokio::time::interval(TICK);
        loop {
            let quiet_at = this.quiet_at();
            tokio::select! {
                biased;
                () = signals.next() => break,
                Some(item) = news.recv() => {
                    let is_over = tokio::select! {
                        () = this.take_in(item) => false,
                        () = signals.next() => true,
                    };
                    if is_over {
                        break;
                    }
                }
                status = ended(&mut this.process) => this.note_end(status),
                () = tokio::time::sleep_until(quiet_at.into()), if this.is_due() => {
                    this.build_pending();
                }
                _ = tick.tick() => this.tick(),
            }
        }
        Ok(this.close(&mut signals).await)
    }
}

async fn ended(process: &mut Option<Process>) -> std::io::Result<ExitStatus> {
    match process {
        Some(process) => process.ended().await,
        None => std::future::pending().await,
    }
}

impl Loop {
    fn is_due(&self) -> bool {
        self.pending.is_some() && self.building.is_none()
    }

    fn quiet_at(&self) -> Instant {
        self.pending.as_ref().map_or_else(Instant::now, |pending| pending.quiet_at)
    }

    fn build_pending(&mut self) {
        let Some(pending) = self.pending.take() else { return };
        let name = pending.path.file_name().unwrap_or_default().display().to_string();
        self.say(&format!("{name} has changed; building."));
        self.build(pending.first_at);
    }

    fn say(&mut self, line: &str) {
        self.session.screen.say(line);
    }

    fn build(&mut self, changed_at: Instant) {
        let (project, sender) = (self.session.project.clone(), self.sender.clone());
        let task = tokio::spawn(async move {
            let progress = |count, name: &str| {
                let _ = sender.send(News::Compiled { count, name: name.to_owned() });
            };
            let result = project.build(progress).await;
            let _ = sender.send(News::Built(result));
        });
        let now = Instant::now();
        self.building = Some(Building {
            _task: AbortOnDropHandle::new(task),
            since: now,
            changed_at,
            told_at: now,
            compiled: 0,
        });
        self.tick();
    }

    async fn take_in(&mut self, item: News) {
        match item {
            News::Changed { path, at } => {
                let first_at = self.pending.as_ref().map_or(at, |pending| pending.first_at);
                self.pending = Some(Pending { first_at, quiet_at: at + QUIET, path });
            }
            News::Compiled { count, name } => self.note_progress(count, &name),
            News::Built(result) => self.note_build(result).await,
            News::Line { run, line } if run == self.run => {
                let line = logline::shorten(&line, self.session.screen.paint());
                self.say(&line);
            }
            News::Ready { run } if run == self.run => self.note_ready(),
            News::Objects { run, overview } if run == self.run => {
                self.session.screen.learn(overview.objects);
                self.session.screen.refresh();
            }
            // News of a previous run.
            News::Line { .. } | News::Ready { .. } | News::Objects { .. } => {}
        }
    }

    fn note_progress(&mut self, count: usize, name: &str) {
        let is_live = self.session.screen.is_live();
        let Some(building) = &mut self.building else { return };
        building.compiled = count;
        if !is_live && building.told_at.elapsed() >= PROGRESS_EVERY {
            building.told_at = Instant::now();
            let seconds = building.since.elapsed().as_secs();
            let crates = counted(count, "crate");
            self.say(&format!("still building: {crates} in {seconds} s, now {name}"));
        }
        self.tick();
    }

    async fn note_build(&mut self, result: Result<Built, BuildError>) {
        let Some(building) = self.building.take() else { return };
        let took = seconds(building.since.elapsed());
        match result {
            Ok(built) if built.is_fresh && self.process.is_some() => {
                self.say(&format!("Nothing to do: the program is the same ({took})."));
            }
            Ok(built) => {
                self.say(&format!("Built in {took}."));
                self.warn_of_unused_handlers();
                self.changed_at = building.changed_at;
                if let Err(failure) = self.replace(&built).await {
                    let text = failure.render();
                    let red = self.session.screen.paint().red("The operator cannot be started:");
                    self.say(&format!("{red}\n{}", text.trim_end()));
                }
            }
            Err(error) => self.complain(error),
        }
        self.tick();
    }

    fn warn_of_unused_handlers(&mut self) {
        for name in unused_handlers(&self.session.project.folder) {
            let text = format!("The handler `{name}` is never called: it is in no operator.");
            let red = self.session.screen.paint().red(&text);
            self.say(&red);
        }
    }

    fn complain(&mut self, error: BuildError) {
        let paint = self.session.screen.paint();
        let head = match self.process {
            Some(_) => "The build failed; the former operator goes on.",
            None => "The build failed; waiting for a change.",
        };
        let mut lines = vec![paint.red(head)];
        match error {
            BuildError::Cargo(text) => lines.push(format!("  {}", text.replace('\n', "\n  "))),
            BuildError::Diagnostics(all) => {
                let shown = all.iter().take(ERRORS_MAX);
                lines.extend(shown.map(|diagnostic| format!("  {}", one_line(diagnostic))));
                if all.len() > ERRORS_MAX {
                    let more = all.len() - ERRORS_MAX;
                    lines.push(format!("  and {more} more; `cargo build` shows them all"));
                }
            }
        }
        self.say(&lines.join("\n"));
    }

    /// Stops the previous operator, if there is one, and starts the newest.
    async fn replace(&mut self, built: &Built) -> Result<(), Failure> {
        let description = Description::of(&built.executable).await?;
        if let Some(installing) = &mut self.session.installing {
            installing.install(&description).await?;
        }
        if let Some(mut former) = self.process.take() {
            self.asking = None;
            former.stop().await;
        }
        self.run += 1;
        let launch = Launch {
            executable: &built.executable,
            kubeconfig: &self.session.kubeconfig,
            probes: self.session.probes,
            has_webhooks: self.session.is_embedded && description.has_webhooks(),
            options: &self.session.options,
        };
        self.process = Some(Process::start(&launch, self.run, &self.sender)?);
        self.started_at = Some(Instant::now());
        let asking = ask(Operator::on(self.session.probes), self.run, self.sender.clone());
        self.asking = Some(AbortOnDropHandle::new(tokio::spawn(asking)));
        Ok(())
    }

    fn note_ready(&mut self) {
        let took = seconds(self.changed_at.elapsed());
        self.session.screen.forget();
        let green = self.session.screen.paint().green("The operator is running");
        let since = if self.run == 1 { "the start" } else { "the change" };
        self.say(&format!("{green}, {took} after {since}."));
    }

    fn note_end(&mut self, status: std::io::Result<ExitStatus>) {
        (self.process, self.asking) = (None, None);
        let status = match status {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        let red = self.session.screen.paint().red("The operator has ended");
        self.say(&format!("{red} ({status}); waiting for a change."));
        self.tick();
    }

    fn tick(&mut self) {
        let status = match (&self.building, &self.process, self.started_at) {
            (Some(building), _, _) => {
                let seconds = building.since.elapsed().as_secs();
                format!("building: {}, {seconds} s", counted(building.compiled, "crate"))
            }
            (None, Some(_), Some(at)) => format!("running for {} s", at.elapsed().as_secs()),
            _ => "not running".to_owned(),
        };
        self.session.screen.set_status(status);
        self.session.screen.refresh();
    }

    /// Shuts down; a second signal ends everything at once.
    async fn close(mut self, signals: &mut Signals) -> u8 {
        (self.building, self.asking) = (None, None);
        self.session.screen.set_status("stopping");
        self.say("Stopping; press Ctrl-C again to stop at once.");
        let code = match &mut self.process {
            None => 0,
            Some(process) => {
                let code = tokio::select! {
                    () = process.stop() => 0,
                    () = signals.next() => EXIT_INTERRUPTED,
                };
                if code != 0 {
                    process.kill();
                }
                code
            }
        };
        self.session.screen.close();
        self.say(if code == 0 { "Stopped." } else { "Stopped by force." });
        code
    }
}

/// Polls the operator for news until it is gone.
async fn ask(operator: Operator, run: u64, sender: mpsc::UnboundedSender<News>) {
    while !operator.is_ready().await {
        tokio::time::sleep(READY_EVERY).await;
    }
    let _ = sender.send(News::Ready { run });
    let mut sequence = 0;
    loop {
        if let Ok(overview) = operator.objects_since(sequence).await
            && overview.sequence != sequence
        {
            sequence = overview.sequence;
            if sender.send(News::Objects { run, overview }).is_err() {
                return;
            }
        }
        tokio::time::sleep(NEWS_EVERY).await;
    }
}

/// One compiler error on one line.
fn one_line(diagnostic: &Diagnostic) -> String {
    let place = diagnostic.place.as_ref().map(|place| format!("{place}  ")).unwrap_or_default();
    let label = diagnostic.label.as_ref().map(|label| format!(": {label}")).unwrap_or_default();
    let code = diagnostic.code.as_ref().map(|code| format!(" [{code}]")).unwrap_or_default();
    format!("{place}{}{label}{code}", diagnostic.message)
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}
