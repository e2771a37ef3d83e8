//! Several replicas of one operator, which are killed, stopped, frozen and cut off while objects
//! are edited.
//!
//! Every replica is a process with its own proxy. The log of side effects is judged like that of
//! one operator; in addition, no two replicas may act on an object at the same time.

mod judge;
mod report;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::sync::Mutex;
use tokio::time::sleep;

use self::judge::Takeover;
use super::api::Api;
use super::driver::{Counts, Driver};
use super::faults::served;
use super::history::History;
use super::judge::Finding;
use super::operator::Operator;
use super::proxy::Proxy;
use super::run::{self, PATIENCE, WINDOW};
use super::schedule::{Schedule, Size};
use super::server::Server;
use super::subject::Subject;
use super::tokens::Tokens;
use super::watcher::{self, Book};
use super::{now, world};

pub(super) use report::report;

/// Longer than the duration of a Lease, so that others take over in the meantime.
const AWAY_MS: std::ops::Range<u64> = 20_000..30_000;
/// How long a process is frozen in runs of at least this length.
const FROZEN_LONG: Duration = Duration::from_secs(60);
const LONG_RUN: Duration = Duration::from_mins(4);
/// How long a killed or stopped process is down.
const DOWN_MS: std::ops::Range<u64> = 0..20_000;
const PAUSE_MS: std::ops::Range<u64> = 2_000..8_000;
/// There are no faults in the last part of a run.
const FAULTS_UNTIL: f64 = 0.9;

/// How replicas coordinate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Mode {
    /// Each has a share of the objects.
    Shards,
    /// One leads, the others stand by.
    Standby,
}

impl Mode {
    fn flag(self) -> &'static str {
        match self {
            Self::Shards => "--shards=auto",
            Self::Standby => "--leader-elect",
        }
    }
}

/// A fault of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Killed,
    Stopped,
    Frozen,
    CutOff,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Killed, Self::Stopped, Self::Frozen, Self::CutOff];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Killed => "killed",
            Self::Stopped => "stopped",
            Self::Frozen => "frozen",
            Self::CutOff => "cut off",
        }
    }
}

/// One fault: the process and the time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trouble {
    pub(super) kind: Kind,
    pub(super) pid: u32,
    pub(super) began: f64,
    pub(super) ended: f64,
}

/// The result of a run.
pub(super) struct Outcome {
    pub(super) history: History,
    pub(super) findings: Vec<Finding>,
    pub(super) counts: Counts,
    pub(super) takeovers: Vec<Takeover>,
    pub(super) settled: Option<Duration>,
}

/// A process and its connection to the server.
struct Replica {
    operator: Operator,
    proxy: Proxy,
}

/// Runs the schedule and judges the result.
pub(super) async fn play(
    server: Server,
    (mode, count): (Mode, usize),
    size: Size,
    folder: &Path,
    is_real: bool,
) -> Result<Outcome> {
    let endpoint = server.endpoint.clone();
    let mut api = Api::new(&endpoint)?;
    for (path, body) in world::surroundings() {
        api.ensure(&path, &body, PATIENCE).await?;
    }
    served(&mut api).await?;
    let mut replicas = Vec::new();
    for number in 0..count {
        let place = folder.join(format!("replica-{number}"));
        std::fs::create_dir_all(&place)?;
        let proxy = Proxy::start(server.authority()).await?;
        let address = format!("https://{}", proxy.address);
        Tokens::start(&endpoint, place.clone(), &address, is_real).await?;
        let operator = Operator::replica(folder.to_owned(), place, mode.flag());
        operator.start()?;
        replicas.push(Replica { operator, proxy });
    }
    let book = Book::default();
    let driver = Arc::new(Mutex::new(Driver::new(Api::new(&endpoint)?, book.clone(), size.slots)));
    let fleet = Fleet { replicas: &replicas, size, book: &book, driver };
    tokio::select! {
        outcome = fleet.play(api, folder) => outcome,
        () = run::interrupted() => bail!("interrupted"),
        ended = supervise(&replicas) => Err(ended.err().context("nobody looks after the replicas")?),
        ended = watcher::watch(&endpoint, world::GADGETS, &book) => {
            Err(ended.err().context("nobody watches the objects")?)
        }
    }
}

async fn supervise(replicas: &[Replica]) -> Result<()> {
    loop {
        for replica in replicas {
            replica.operator.attend().await?;
        }
    }
}

struct Fleet<'a> {
    replicas: &'a [Replica],
    size: Size,
    book: &'a Book,
    driver: Arc<Mutex<Driver>>,
}

impl Fleet<'_> {
    async fn play(self, mut api: Api, folder: &Path) -> Result<Outcome> {
        self.driver.lock().await.fill().await?;
        run::settle(&mut api, Subject::Ours).await?;
        let schedule = Schedule::new(self.size);
        let began = Instant::now();
        let (_, troubles) = tokio::try_join!(
            run::make_edits(&self.driver, &schedule, self.size, began),
            self.inject(began),
        )?;
        let mut driver = self.driver.lock().await;
        driver.finish().await?;
        let settled = run::settle(&mut api, Subject::Ours).await?;
        let window = (now(), now() + WINDOW.as_secs_f64());
        sleep(WINDOW).await;
        let mut history =
            run::look(&mut api, self.book, &mut driver, folder, Subject::Ours, window).await?;
        history.has_replicas = true;
        let lives = |it: &Replica| it.operator.lives().0;
        history.lives = self.replicas.iter().flat_map(lives).collect();
        for replica in self.replicas {
            replica.operator.stop().await?;
            history.late.extend(replica.operator.lives().1);
        }
        run::write_versions(&history, folder)?;
        let mut findings = super::judge::judge(&history);
        findings.extend(judge::overlaps(&history, &troubles));
        Ok(Outcome {
            findings,
            takeovers: judge::takeovers(&history, &troubles),
            counts: driver.counts,
            history,
            settled,
        })
    }

    /// Injects one fault after another; each kind occurs once before any repeats.
    async fn inject(&self, began: Instant) -> Result<Vec<Trouble>> {
        let mut random = fastrand::Rng::with_seed(self.size.seed ^ 0xfa17);
        let mut troubles = Vec::new();
        let mut deck = Vec::new();
        let end = self.size.length.mul_f64(FAULTS_UNTIL);
        let is_long = self.size.length >= LONG_RUN;
        let longest = if is_long { FROZEN_LONG } else { Duration::from_millis(AWAY_MS.end) };
        loop {
            sleep(Duration::from_millis(random.u64(PAUSE_MS))).await;
            let left = end.saturating_sub(began.elapsed());
            if left < longest {
                return Ok(troubles);
            }
            if deck.is_empty() {
                deck = Kind::ALL.to_vec();
                random.shuffle(&mut deck);
            }
            let replica = &self.replicas[random.usize(..self.replicas.len())];
            let kind = deck.pop().unwrap_or(Kind::Killed);
            let range = match kind {
                Kind::Killed | Kind::Stopped => DOWN_MS,
                Kind::Frozen | Kind::CutOff => AWAY_MS,
            };
            let away = match kind {
                Kind::Frozen if is_long => FROZEN_LONG,
                _ => Duration::from_millis(random.u64(range)),
            };
            troubles.extend(replica.suffer(kind, away).await?);
            if let Some(last) = troubles.last() {
                println!("   {:.0?}: {last:?}", began.elapsed());
            }
        }
    }
}

impl Replica {
    async fn suffer(&self, kind: Kind, away: Duration) -> Result<Option<Trouble>> {
        let Some((pid, _)) = self.operator.usage() else { return Ok(None) };
        let began = now();
        match kind {
            Kind::Killed => {
                self.operator.kill()?;
                sleep(away).await;
                self.operator.start()?;
            }
            Kind::Stopped => {
                self.operator.stop().await?;
                sleep(away).await;
                self.operator.start()?;
            }
            Kind::Frozen => {
                self.operator.freeze(true)?;
                sleep(away).await;
                self.operator.freeze(false)?;
            }
            Kind::CutOff => {
                self.proxy.block();
                sleep(away).await;
                self.proxy.cut();
            }
        }
        Ok(Some(Trouble { kind, pid, began, ended: now() }))
    }
}
