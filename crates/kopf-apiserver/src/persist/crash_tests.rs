//! Clients, watchers and a journal under seeded schedules, on disks that fail and machines that
//! crash. Everything that clients have observed must remain true.
//!
//! Everything, including the journal, runs on one thread, so that a seed reproduces its schedule.
//! `KOPF_CRASH_SEEDS` sets how many schedules run, `KOPF_CRASH_SEED` runs a single one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fastrand::Rng;
use http_body_util::{BodyExt, Full};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::{JoinSet, yield_now};
use tower::ServiceExt;

use super::history::{Content, History, Outcome, Watched};
use super::simulation::{SimulatedDisk, Trouble};
use super::{Disk, Journal};
use crate::store::pending::Work;
use crate::{DeleteOptions, LocalClient, Patch, Server, StatusError, StoreLimits, Stored, Target};

const SEEDS_DEFAULT: u64 = 6;
const CLIENTS: usize = 4;
const NAMES: u8 = 5;
const LIVES: usize = 4;
/// The number of batches in a run without a crash.
const BATCHES: usize = 40;
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

type Shared = Arc<Mutex<History>>;

fn seeds() -> Vec<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    match number("KOPF_CRASH_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("KOPF_CRASH_SEEDS").unwrap_or(SEEDS_DEFAULT)).collect(),
    }
}

async fn pause(random: &mut Rng) {
    for _ in 0..random.u8(0..6) {
        yield_now().await;
    }
}

fn value_of(object: &Value) -> String {
    object["data"]["v"].as_str().unwrap_or_default().to_owned()
}

/// The meaning of a response for the history.
fn outcome_of(answer: Result<Arc<Stored>, StatusError>, is_deletion: bool) -> Outcome {
    match answer {
        Ok(stored) if is_deletion => Outcome::Written(stored.resource_version(), None),
        Ok(stored) => Outcome::Written(stored.resource_version(), Some(value_of(stored.content()))),
        Err(error) if error.code == 404 => Outcome::Absent,
        Err(error) if error.reason == "AlreadyExists" => Outcome::Present,
        Err(error) if error.code == 503 => Outcome::NotStored,
        Err(error) => panic!("{error}"),
    }
}

/// One request.
async fn act(client: &LocalClient, history: &Shared, random: &mut Rng) {
    let name = format!("m{}", random.u8(0..NAMES));
    let value = random.u64(..).to_string();
    let data = json!({"v": value});
    let target = Target::new("configmaps", "default", &name);
    let kind = random.u8(0..8);
    let writes: Option<Content> = match kind {
        0..=4 => Some(Some(value)),
        5 => Some(None),
        _ => None,
    };
    let number = history.lock().invoke(&name, writes);
    let outcome = match kind {
        0..=1 => {
            let object = json!({"metadata": {"name": name}, "data": data});
            outcome_of(client.create("configmaps", "default", object).await, false)
        }
        2..=4 => outcome_of(client.patch(target, Patch::Merge(json!({"data": data}))).await, false),
        5 => outcome_of(client.delete(target, DeleteOptions::default()).await, true),
        _ => match client.get(target).await {
            Ok(stored) => Outcome::Found(stored.resource_version(), value_of(stored.content())),
            Err(_) => Outcome::Absent,
        },
    };
    history.lock().answer(number, outcome);
}

async fn send(server: &Server, uri: &str) -> http::Response<crate::Body> {
    let request = http::Request::builder().uri(uri).body(Full::<Bytes>::default()).unwrap();
    server.service().oneshot(request).await.unwrap()
}

/// Every object with its version and value, and the version of the list.
async fn list(server: &Server) -> (u64, BTreeMap<String, (u64, String)>) {
    let body = send(server, MAPS).await.into_body().collect().await.unwrap().to_bytes();
    let list: Value = serde_json::from_slice(&body).unwrap();
    let version = |object: &Value| -> u64 {
        object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
    };
    let item = |item: &Value| {
        let name = item["metadata"]["name"].as_str().unwrap().to_owned();
        (name, (version(item), value_of(item)))
    };
    (version(&list), list["items"].as_array().unwrap().iter().map(item).collect())
}

/// Watches, disconnects and resumes; records the events in the history under its number.
async fn watch(server: Server, history: Shared, number: usize, mut random: Rng) {
    loop {
        let start = {
            let history = history.lock();
            let watched = &history.watches[number];
            watched.events.last().map_or(watched.start, |(version, ..)| *version)
        };
        let uri = format!("{MAPS}?watch=1&resourceVersion={start}");
        let mut body = send(&server, &uri).await.into_body();
        for _ in 0..random.u8(1..12) {
            let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
            let lines = frame.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            for line in lines {
                let event: Value = serde_json::from_slice(line).unwrap();
                if event["type"] == "ERROR" {
                    // Events from before a restart are not kept.
                    assert_eq!(event["object"]["code"], 410);
                    return;
                }
                note(&history, number, &event);
            }
            pause(&mut random).await;
        }
    }
}

fn note(history: &Shared, number: usize, event: &Value) {
    let object = &event["object"];
    let version = object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    let name = object["metadata"]["name"].as_str().unwrap().to_owned();
    let content = (event["type"] != "DELETED").then(|| value_of(object));
    let mut history = history.lock();
    history.record(version, &name, content.clone());
    history.watches[number].events.push((version, name, content));
}

/// The faults of the disk and the machine.
#[derive(Clone, Copy)]
struct Faults {
    crashes: bool,
    troubles: bool,
    /// Publish before the batch is durable, which is a bug that the test must find.
    publishes_early: bool,
}

/// Runs a server until it crashes or has written enough; returns whether it crashed.
async fn live(
    server: &Server,
    journal: &mut Journal,
    disk: &SimulatedDisk,
    history: &Shared,
    faults: Faults,
    random: &mut Rng,
) -> bool {
    let mut tasks = JoinSet::new();
    for _ in 0..CLIENTS {
        let (client, history, mut random) = (server.local(), Arc::clone(history), random.fork());
        tasks.spawn(async move {
            loop {
                pause(&mut random).await;
                act(&client, &history, &mut random).await;
            }
        });
    }
    for number in 0..history.lock().watches.len() {
        tasks.spawn(watch(server.clone(), Arc::clone(history), number, random.fork()));
    }
    if faults.crashes {
        disk.crash_after(random.u32(1..300));
    }
    let mut batches = 0;
    while batches < BATCHES {
        pause(random).await;
        if faults.troubles && random.u8(0..6) == 0 {
            let all = [Trouble::Full, Trouble::ReadOnly, Trouble::Torn, Trouble::FailingSync];
            disk.set_trouble(random.bool().then(|| all[random.usize(0..all.len())]));
        }
        match journal.next(Duration::ZERO) {
            Work::Write(sealed) => {
                batches += 1;
                pause(random).await;
                if faults.publishes_early {
                    journal.finish(&sealed, Ok(()));
                    pause(random).await;
                }
                let outcome = journal.save(&sealed);
                if disk.is_crashed() {
                    return true;
                }
                pause(random).await;
                if faults.crashes && random.u8(0..40) == 0 {
                    return true;
                }
                if !faults.publishes_early {
                    journal.finish(&sealed, outcome);
                }
            }
            Work::Idle => journal.probe(),
            Work::End => panic!("the store is gone"),
        }
    }
    false
}

/// Waits until the disk works and the newest watch has seen everything.
async fn settle(server: &Server, journal: &mut Journal, history: &Shared) {
    journal.probe();
    while let Work::Write(sealed) = journal.next(Duration::ZERO) {
        let outcome = journal.save(&sealed);
        journal.finish(&sealed, outcome);
    }
    assert_eq!(server.inner().store.disk_problem(), None);
    let (version, present) = list(server).await;
    let mut watches = JoinSet::new();
    for number in 0..history.lock().watches.len() {
        watches.spawn(watch(server.clone(), Arc::clone(history), number, Rng::with_seed(1)));
    }
    for _ in 0..200 {
        yield_now().await;
    }
    watches.abort_all();
    let history = history.lock();
    assert!(version >= history.newest);
    let mut replayed = BTreeMap::new();
    for (version, (key, content)) in &history.observed {
        match content {
            Some(value) => replayed.insert(key.clone(), (*version, value.clone())),
            None => replayed.remove(key),
        };
    }
    assert_eq!(replayed, present, "the watches have told all that there is");
    let last = history.watches.last().and_then(|watched| watched.events.last());
    assert_eq!(last.map(|(version, ..)| *version), history.observed.keys().last().copied());
}

async fn run(seed: u64, faults: Faults) -> History {
    let mut random = Rng::with_seed(seed);
    let history = Shared::default();
    let mut disk = SimulatedDisk::new(Vec::new(), seed);
    let builder = || Server::builder().controllers(false);
    let (mut server, mut journal) = builder().on_disk(Disk::of(disk.clone()), true).unwrap();
    for _ in 0..LIVES {
        let (version, state) = list(&server).await;
        {
            let mut history = history.lock();
            history.check_restart(version, &state);
            for (key, (version, value)) in &state {
                history.record(*version, key, Some(value.clone()));
            }
            // Watches continue where they were, and a new one starts here.
            history.watches.push(Watched { start: version, events: Vec::new() });
        }
        let crashed = live(&server, &mut journal, &disk, &history, faults, &mut random).await;
        disk.set_trouble(None);
        if !crashed {
            settle(&server, &mut journal, &history).await;
        }
        let content = disk.after_crash();
        drop((server, journal));
        disk = SimulatedDisk::new(content, random.u64(..));
        (server, journal) = builder().on_disk(Disk::of(disk.clone()), false).unwrap();
    }
    let (version, state) = list(&server).await;
    let history = std::mem::take(&mut *history.lock());
    history.check_restart(version, &state);
    history.check();
    history
}

fn run_all(faults: Faults, check: impl Fn(&History)) {
    for seed in seeds() {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_time().start_paused(true).build().unwrap();
        println!("seed {seed}");
        let history = runtime.block_on(run(seed, faults));
        check(&history);
    }
}

#[test]
fn what_clients_were_told_survives_crashes_at_any_moment() {
    run_all(Faults { crashes: true, troubles: false, publishes_early: false }, |history| {
        assert!(history.observed.len() > 20, "clients and watchers were told something");
    });
}

#[test]
fn the_checks_notice_a_store_that_publishes_too_early() {
    let faults = Faults { crashes: true, troubles: false, publishes_early: true };
    let caught = std::panic::catch_unwind(|| run_all(faults, |_| {}));
    assert!(caught.is_err(), "a store that publishes what it may lose is not noticed");
}

#[test]
fn what_clients_were_told_survives_crashes_of_failing_disks() {
    run_all(Faults { crashes: true, troubles: true, publishes_early: false }, |_| {});
}

#[test]
fn writes_that_a_disk_refuses_are_never_seen() {
    run_all(Faults { crashes: false, troubles: true, publishes_early: false }, |history| {
        let refused: Vec<&Content> = history
            .requests
            .iter()
            .filter(|request| request.outcome == Outcome::NotStored)
            .filter_map(|request| request.writes.as_ref())
            .filter(|content| content.is_some())
            .collect();
        assert!(!refused.is_empty(), "the disk has refused something");
        for (version, (key, content)) in &history.observed {
            assert!(!refused.contains(&content), "{key} at {version} was refused");
        }
    });
}

#[test]
fn a_full_or_failing_disk_is_reported_and_writes_resume_without_a_restart() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        for trouble in [Trouble::Full, Trouble::ReadOnly, Trouble::Torn, Trouble::FailingSync] {
            let disk = SimulatedDisk::new(Vec::new(), 1);
            let builder = Server::builder().controllers(false);
            let (server, journal) = builder.on_disk(Disk::of(disk.clone()), true).unwrap();
            journal.start().unwrap();
            check_trouble(&server, &disk, trouble).await;
        }
    });
}

async fn check_trouble(server: &Server, disk: &SimulatedDisk, trouble: Trouble) {
    let client = server.local();
    let map = |name: &str| json!({"metadata": {"name": name}, "data": {"v": "x".repeat(20_000)}});
    let target = Target::new("configmaps", "default", "kept");
    client.create("configmaps", "default", map("kept")).await.unwrap();
    let (version, before) = list(server).await;
    disk.set_trouble(Some(trouble));
    // A disk with torn writes fails eventually.
    let mut refused = None;
    for number in 0..50 {
        let answer = client.create("configmaps", "default", map(&format!("new-{number}"))).await;
        if let Err(error) = answer {
            refused = Some((format!("new-{number}"), error));
            break;
        }
    }
    let (name, error) = refused.expect("the disk refuses writes");
    assert_eq!(error.code, 503, "{error}");
    assert!(error.message.contains("simulated"), "{error}");
    assert_eq!(error.details.as_ref().unwrap().retry_after_seconds, 1);
    if trouble != Trouble::Torn {
        let deleted = client.delete(target, DeleteOptions::default()).await;
        assert_eq!(deleted.unwrap_err().code, 503);
        assert_eq!(list(server).await, (version, before.clone()), "{trouble:?}: nothing is seen");
        for path in ["/healthz", "/readyz?verbose", "/readyz/etcd"] {
            let answer = send(server, path).await;
            assert_eq!(answer.status(), 500, "{path}");
            let text = answer.into_body().collect().await.unwrap().to_bytes();
            let text = String::from_utf8(text.to_vec()).unwrap();
            assert!(text.contains("[-]etcd failed: could not write"), "{text}");
        }
    }
    assert_eq!(send(server, "/livez").await.status(), 200, "a restart would not help");
    disk.set_trouble(None);
    let created = client.create("configmaps", "default", map(&name)).await.unwrap();
    assert!(created.resource_version() > version);
    assert!(client.get(target).await.is_ok(), "the refused deletion did not happen");
    assert_eq!(send(server, "/healthz").await.status(), 200);
    client.delete(target, DeleteOptions::default()).await.unwrap();
    // Rejected writes must not be on the disk either.
    let present = list(server).await;
    let content = disk.after_crash();
    let disk = Disk::of(SimulatedDisk::new(content, 2));
    let (again, _journal) = Server::builder().controllers(false).on_disk(disk, false).unwrap();
    assert_eq!(list(&again).await, present, "{trouble:?}");
}

#[test]
fn a_damaged_file_is_an_error_or_the_same_world() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let disk = SimulatedDisk::new(Vec::new(), 1);
        let builder = Server::builder().controllers(false);
        let (server, mut journal) = builder.on_disk(Disk::of(disk.clone()), true).unwrap();
        journal.probe();
        let present = everything(&server);
        drop((server, journal));
        let content = disk.after_crash();
        let mut random = Rng::with_seed(3);
        let mut errors = 0;
        for _ in 0..DAMAGES {
            let mut damaged = content.clone();
            match random.u8(0..3) {
                0 => damaged.truncate(random.usize(0..content.len())),
                1 => {
                    let start = random.usize(0..content.len());
                    let end = (start + random.usize(1..8192)).min(content.len());
                    damaged[start..end].fill(0);
                }
                _ => {
                    for _ in 0..200 {
                        let place = random.usize(0..content.len());
                        damaged[place] ^= 1 << random.u8(0..8);
                    }
                }
            }
            let disk = Disk::of(SimulatedDisk::new(damaged, 2));
            match Server::builder().controllers(false).on_disk(disk, false) {
                Err(_) => errors += 1,
                Ok((server, _journal)) => assert_eq!(everything(&server), present),
            }
        }
        assert!(errors > DAMAGES / 4, "{errors} damages were noticed");
    });
}

/// Every object of the server, as text.
fn everything(server: &Server) -> Vec<String> {
    let snapshot = server.inner().store.snapshot();
    let tables = snapshot.tables().flat_map(|(_, table)| table.iter());
    tables.map(|(_, packed)| String::from_utf8_lossy(packed.encoded()).into_owned()).collect()
}

/// How many kinds of damage to a file are tried.
const DAMAGES: usize = 60;

#[test]
fn a_slow_disk_is_reported_and_its_queue_is_bounded() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let limits = StoreLimits {
            pending_changes_max: 2,
            disk_slow_after: Duration::ZERO,
            ..StoreLimits::default()
        };
        let disk = Disk::of(SimulatedDisk::new(Vec::new(), 1));
        let builder = Server::builder().controllers(false).limits(limits);
        let (server, mut journal) = builder.on_disk(disk, true).unwrap();
        let create = |name: &'static str| {
            let client = server.local();
            let map = json!({"metadata": {"name": name}});
            async move { client.create("configmaps", "default", map).await }
        };
        let waiting = [tokio::spawn(create("a")), tokio::spawn(create("b"))];
        yield_now().await;
        let refused = create("c").await.unwrap_err();
        assert_eq!(refused.code, 503);
        assert!(refused.message.contains("2 writes"), "{refused}");
        assert_eq!(list(&server).await.1, BTreeMap::new(), "nothing is seen yet");
        let Work::Write(sealed) = journal.next(Duration::ZERO) else { panic!("changes wait") };
        let health = send(&server, "/healthz").await;
        assert_eq!(health.status(), 500, "the write takes longer than it may");
        let outcome = journal.save(&sealed);
        assert_eq!(list(&server).await.1, BTreeMap::new(), "still nothing is seen");
        journal.finish(&sealed, outcome);
        for answer in waiting {
            answer.await.unwrap().unwrap();
        }
        assert_eq!(list(&server).await.1.len(), 2);
        assert_eq!(send(&server, "/healthz").await.status(), 200);
    });
}
