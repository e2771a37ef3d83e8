//! One run: plays the schedule to an operator on a new server, waits, and collects evidence.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::sleep;

use super::api::Api;
use super::driver::{Counts, Driver};
use super::faults::{Faults, served};
use super::history::{self, Child, History, Living};
use super::judge::{Finding, judge};
use super::operator::Operator;
use super::proxy::Proxy;
use super::schedule::{KILLS_UNTIL, Schedule, Size};
use super::server::Server;
use super::subject::Subject;
use super::tokens::Tokens;
use super::watcher::{self, Book};
use super::{now, world};

pub(super) const PATIENCE: Duration = Duration::from_secs(120);
/// How long the operator may take until everything is handled, at the start and at the end.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(240);
/// Objects that do not change for this long are settled, handled or not.
const STILL_TIMEOUT: Duration = Duration::from_secs(100);
const SETTLE_INTERVAL: Duration = Duration::from_secs(1);
/// How many consecutive checks must find everything handled.
const SETTLED_LOOKS: u32 = 4;
/// The label of children with the uid of their owner.
const OWNER: &str = "kopf.dev/owner";
/// Five intervals of the timer.
pub(super) const WINDOW: Duration = Duration::from_secs(11);
const STATUS_INTERVAL: Duration = Duration::from_secs(60);

/// The result of a run.
pub(super) struct Outcome {
    pub(super) subject: Subject,
    pub(super) history: History,
    pub(super) findings: Vec<Finding>,
    pub(super) counts: Counts,
    pub(super) faults: BTreeMap<&'static str, u32>,
    pub(super) tokens_refused: u32,
    /// How long settling took after the last edit; `None` if it took too long.
    pub(super) settled: Option<Duration>,
    /// How often the watch may have missed versions.
    pub(super) gaps: u32,
}

/// Runs the schedule and judges the result.
pub(super) async fn play(
    subject: Subject,
    server: Server,
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
    let proxy = Proxy::start(server.authority()).await?;
    let address = format!("https://{}", proxy.address);
    let tokens = Tokens::start(&endpoint, folder.to_owned(), &address, is_real).await?;
    let operator = Arc::new(Operator::new(subject, folder.to_owned()));
    operator.start()?;
    let book = Book::default();
    let driver = Driver::new(Api::new(&endpoint)?, book.clone(), size.slots);
    let faults = Faults {
        server,
        operator: Arc::clone(&operator),
        proxy,
        tokens,
        driver: Arc::new(Mutex::new(driver)),
        counts: BTreeMap::new(),
        cycles: Vec::new(),
        freed: BTreeSet::new(),
    };
    let stage = Stage { subject, size, operator: &operator, book: &book, api };
    tokio::select! {
        outcome = stage.play(faults, folder) => outcome,
        // Returning stops the operator and the server.
        () = interrupted() => bail!("interrupted"),
        ended = operator.supervise() => Err(ended.err().context("nobody looks after the operator")?),
        ended = watcher::watch(&endpoint, world::GADGETS, &book) => {
            Err(ended.err().context("nobody watches the objects")?)
        }
    }
}

/// Resolves on SIGINT or SIGTERM.
pub(super) async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}

struct Stage<'a> {
    subject: Subject,
    size: Size,
    operator: &'a Operator,
    book: &'a Book,
    api: Api,
}

impl Stage<'_> {
    async fn play(mut self, mut faults: Faults, folder: &Path) -> Result<Outcome> {
        let driver = Arc::clone(&faults.driver);
        driver.lock().await.fill().await?;
        settle(&mut self.api, self.subject).await?;
        let schedule = Schedule::new(self.size);
        let began = Instant::now();
        tokio::try_join!(
            make_edits(&driver, &schedule, self.size, began),
            inject_faults(&mut faults, &schedule, self.size, began),
            self.show_status(&driver, began),
        )?;
        let mut driver = driver.lock().await;
        driver.finish().await?;
        faults.server.restart_controllers()?;
        let settled = settle(&mut self.api, self.subject).await?;
        let window = (now(), now() + WINDOW.as_secs_f64());
        sleep(WINDOW).await;
        let last = self.operator.usage();
        let first = self.operator.lives().0.last().and_then(|life| life.usage);
        let mut history =
            look(&mut self.api, self.book, &mut driver, folder, self.subject, window).await?;
        history.rest = first.zip(last).map(|((first, _), (_, last))| (first, last));
        history.cycles = std::mem::take(&mut faults.cycles);
        history.freed = std::mem::take(&mut faults.freed);
        // From here on, unstored outcomes are not excused by the end of the process: it had enough
        // time.
        history.lives = self.operator.lives().0;
        self.operator.stop().await?;
        history.late = self.operator.lives().1;
        write_versions(&history, folder)?;
        Ok(Outcome {
            subject: self.subject,
            findings: judge(&history),
            history,
            counts: driver.counts,
            faults: std::mem::take(&mut faults.counts),
            tokens_refused: faults.tokens.refused,
            settled,
            gaps: self.book.gaps(),
        })
    }

    /// Prints a line per minute.
    async fn show_status(&self, driver: &Mutex<Driver>, began: Instant) -> Result<()> {
        let mut shown = Duration::ZERO;
        while began.elapsed() < self.size.length {
            let left = self.size.length.saturating_sub(began.elapsed());
            sleep(SETTLE_INTERVAL.min(left)).await;
            if began.elapsed() < shown + STATUS_INTERVAL {
                continue;
            }
            shown = began.elapsed();
            // The deletion of the definition holds the lock for a while.
            let Ok(driver) = driver.try_lock() else { continue };
            let (edits, processes) = (driver.counts.edits(), self.operator.lives().0.len());
            let name = self.subject.name();
            println!("   {name}, {shown:.0?}: {edits} edits, {processes} processes so far");
        }
        Ok(())
    }
}

/// Waits until all objects are handled, and returns how long that took; `None` if they do not
/// change any more, or not in time.
pub(super) async fn settle(api: &mut Api, subject: Subject) -> Result<Option<Duration>> {
    let began = Instant::now();
    let mut looks = 0;
    let mut since = Duration::ZERO;
    let mut moved = (Instant::now(), Vec::new());
    while began.elapsed() < SETTLE_TIMEOUT && moved.0.elapsed() < STILL_TIMEOUT {
        let objects = api.list(world::GADGETS, PATIENCE).await?;
        let children = api.list(world::CONFIG_MAPS, PATIENCE).await?;
        let versions: Vec<_> = objects.iter().chain(&children).map(watcher::version_of).collect();
        if versions != moved.1 {
            moved = (Instant::now(), versions);
        }
        let has_children = !subject.declares_children() || are_owned(&objects, &children);
        if objects.iter().all(is_settled) && has_children {
            looks += 1;
        } else {
            looks = 0;
            since = began.elapsed();
        }
        if looks == SETTLED_LOOKS {
            return Ok(Some(since));
        }
        sleep(SETTLE_INTERVAL).await;
    }
    Ok(None)
}

/// Collects the final state.
pub(super) async fn look(
    api: &mut Api,
    book: &Book,
    driver: &mut Driver,
    folder: &Path,
    subject: Subject,
    window: (f64, f64),
) -> Result<History> {
    let objects = api.list(world::GADGETS, PATIENCE).await?;
    driver.check(&objects);
    let children = api.list(world::CONFIG_MAPS, PATIENCE).await?;
    let end = serde_json::json!({"objects": objects, "children": children});
    std::fs::write(folder.join("end.json"), format!("{end:#}\n"))?;
    let calls = std::fs::read_to_string(folder.join("calls.jsonl")).unwrap_or_default();
    Ok(History {
        calls: history::calls(&calls),
        versions: book.versions(),
        living: objects.iter().filter_map(living).collect(),
        children: children.iter().filter_map(child).collect(),
        declares_children: subject.declares_children(),
        window,
        server: std::mem::take(&mut driver.complaints),
        ..History::default()
    })
}

/// Writes all versions next to the calls, for the analysis of violations.
pub(super) fn write_versions(history: &History, folder: &Path) -> Result<()> {
    let mut file = std::io::BufWriter::new(std::fs::File::create(folder.join("versions.jsonl"))?);
    for (uid, versions) in &history.versions {
        for version in versions {
            writeln!(file, "{}", serde_json::json!({"uid": uid, "version": version}))?;
        }
    }
    Ok(file.flush()?)
}

pub(super) async fn make_edits(
    driver: &Mutex<Driver>,
    schedule: &Schedule,
    size: Size,
    began: Instant,
) -> Result<()> {
    for planned in &schedule.edits {
        sleep(planned.at.saturating_sub(began.elapsed())).await;
        if began.elapsed() > size.length {
            break;
        }
        driver.lock().await.apply(planned.slot, &planned.edit).await?;
    }
    Ok(())
}

async fn inject_faults(
    faults: &mut Faults,
    schedule: &Schedule,
    size: Size,
    began: Instant,
) -> Result<()> {
    let mut definitions = schedule.definitions.iter().peekable();
    for (pause, fault) in &schedule.faults {
        let due = definitions.next_if(|(at, _)| *at <= began.elapsed());
        if let Some((_, how)) = due {
            faults.cycle(*how).await?;
        }
        sleep((*pause).min(size.length.saturating_sub(began.elapsed()))).await;
        if began.elapsed() >= size.length {
            break;
        }
        let is_late = began.elapsed() > size.length.mul_f64(KILLS_UNTIL);
        if !(is_late && fault.is_about_the_operator_process()) {
            faults.inject(fault).await?;
        }
    }
    Ok(())
}

fn is_settled(object: &Value) -> bool {
    object["metadata"].get("deletionTimestamp").is_none()
        && world::handled(object) == Some(world::state(object))
        && world::progress(object).is_empty()
}

/// Whether every object has a child, and no child of a deleted object is left.
///
/// The garbage collector of a real server takes time after the server was killed, and a new child
/// cannot be created while the child of an earlier object with the same name exists.
fn are_owned(objects: &[Value], children: &[Value]) -> bool {
    let uids: BTreeSet<&str> =
        objects.iter().filter_map(|object| object["metadata"]["uid"].as_str()).collect();
    let owners = children.iter().filter_map(|child| child["metadata"]["labels"][OWNER].as_str());
    owners.collect::<BTreeSet<_>>() == uids
}

fn living(object: &Value) -> Option<Living> {
    Some(Living {
        uid: object["metadata"]["uid"].as_str()?.to_owned(),
        name: object["metadata"]["name"].as_str()?.to_owned(),
        last: watcher::version_from(object, watcher::version_of(object)?),
    })
}

/// Only objects with an owner are children.
fn child(object: &Value) -> Option<Child> {
    let meta = &object["metadata"];
    Some(Child {
        owner: meta["labels"][OWNER].as_str()?.to_owned(),
        name: meta["name"].as_str()?.to_owned(),
        data: object["data"].clone(),
    })
}
