//! A server that is killed at random moments: no version is used twice, and a watch that is resumed
//! after the restart misses nothing and has seen nothing that was lost.
//!
//! The server is a child process of the test and is killed with SIGKILL. Clients talk HTTP to it.
//! `KOPF_CRASH_ROUNDS` sets how often it is killed.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::TryStreamExt;
use http_body_util::{BodyExt, Full};
use k8s_openapi::api::core::v1::ConfigMap;
use kopf_apiserver::{DeleteOptions, Server, Target};
use kube::api::{
    Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use kube::{Client, Config, ResourceExt};
use serde_json::json;
use tower::ServiceExt;

/// Set in the process that serves and is killed: its data directory.
const VICTIM: &str = "KOPF_DURABILITY_TEST_DIRECTORY";
/// How often the server is killed.
const ROUNDS: &str = "KOPF_CRASH_ROUNDS";
const ROUNDS_DEFAULT: u64 = 6;
const WRITERS: u64 = 4;
/// How many objects are created after each restart.
const LATE_WRITES: usize = 10;

/// Serves a directory until killed.
async fn serve_until_killed(directory: &str) {
    let server = Server::builder().controllers(false).open(directory).unwrap();
    let listening = server.listen_plain("127.0.0.1:0".parse().unwrap()).await.unwrap();
    println!("\nurl {}", listening.url());
    std::future::pending().await
}

/// A server process for a directory.
struct Victim {
    process: Child,
    maps: Api<ConfigMap>,
}

impl Victim {
    fn start(directory: &Path) -> Self {
        let test = "durability::a_watch_resumed_after_a_kill_misses_nothing";
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(VICTIM, directory)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let url = lines.find_map(|line| Some(line.unwrap().strip_prefix("url ")?.to_owned()));
        let mut config = Config::new(url.expect("the server starts").parse().unwrap());
        config.default_namespace = "default".to_owned();
        let client = Client::try_from(config).unwrap();
        Self { process, maps: Api::default_namespaced(client) }
    }

    fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// What clients have observed: the object of each version, with its uid.
#[derive(Default)]
struct Told {
    versions: BTreeMap<u64, (String, String)>,
    /// The last acknowledged version of each object; `None` once its deletion was acknowledged.
    acknowledged: BTreeMap<String, Option<u64>>,
}

fn version(object: &ConfigMap) -> u64 {
    object.resource_version().unwrap().parse().unwrap()
}

impl Told {
    fn note(&mut self, object: &ConfigMap) {
        let identity = (object.name_any(), object.uid().unwrap());
        let known = self.versions.entry(version(object)).or_insert_with(|| identity.clone());
        assert_eq!(*known, identity, "version {} is used twice", version(object));
    }
}

/// Creates, patches and deletes its own objects until the server is gone.
async fn write(maps: Api<ConfigMap>, prefix: String, told: Arc<Mutex<Told>>) {
    for number in 0.. {
        let name = format!("{prefix}-{}", number / 3);
        let outcome = match number % 3 {
            0 => {
                let object = json!({"metadata": {"name": name}});
                let object = serde_json::from_value(object).unwrap();
                maps.create(&PostParams::default(), &object).await.map(Some)
            }
            1 => {
                let patch = Patch::Merge(json!({"data": {"k": "1"}}));
                maps.patch(&name, &PatchParams::default(), &patch).await.map(Some)
            }
            _ if number % 2 == 0 => continue,
            _ => maps.delete(&name, &DeleteParams::default()).await.map(|_| None),
        };
        let mut told = told.lock().unwrap();
        let Ok(object) = outcome else {
            // The last write may or may not have succeeded.
            told.acknowledged.remove(&name);
            return;
        };
        if let Some(object) = &object {
            told.note(object);
        }
        told.acknowledged.insert(name, object.as_ref().map(version));
    }
}

/// A watcher that keeps its state over all restarts.
struct Watcher {
    /// Every known object, with its version.
    state: BTreeMap<String, u64>,
    last: u64,
    told: Arc<Mutex<Told>>,
}

impl Watcher {
    async fn list(maps: &Api<ConfigMap>, told: &Arc<Mutex<Told>>) -> Self {
        let list = maps.list(&ListParams::default()).await.unwrap();
        let last = list.metadata.resource_version.as_ref().unwrap().parse().unwrap();
        let state = list.items.iter().map(|map| (map.name_any(), version(map))).collect();
        Self { state, last, told: Arc::clone(told) }
    }

    fn take(&mut self, event: WatchEvent<ConfigMap>) {
        let (map, kept) = match event {
            WatchEvent::Added(map) => {
                assert!(!self.state.contains_key(&map.name_any()), "added twice");
                (map, true)
            }
            WatchEvent::Modified(map) => {
                assert!(self.state.contains_key(&map.name_any()), "a gap before {map:?}");
                (map, true)
            }
            WatchEvent::Deleted(map) => {
                assert!(self.state.contains_key(&map.name_any()), "a gap before {map:?}");
                (map, false)
            }
            other => panic!("unexpected {other:?}"),
        };
        assert!(version(&map) > self.last, "versions must rise");
        self.last = version(&map);
        self.told.lock().unwrap().note(&map);
        match kept {
            true => self.state.insert(map.name_any(), version(&map)),
            false => self.state.remove(&map.name_any()),
        };
    }

    /// Watches until the server is gone or the state has this version.
    async fn follow(&mut self, maps: &Api<ConfigMap>, until: u64) {
        let params = WatchParams::default().timeout(20);
        let Ok(stream) = maps.watch(&params, &self.last.to_string()).await else { return };
        let mut stream = Box::pin(stream);
        while self.last < until {
            match stream.try_next().await {
                Ok(Some(WatchEvent::Error(status))) if status.code == 410 => {
                    // The version is expired: the client lists again.
                    *self = Self::list(maps, &self.told).await;
                    return;
                }
                Ok(Some(event)) => self.take(event),
                _ => return,
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_resumed_after_a_kill_misses_nothing() {
    if let Ok(directory) = std::env::var(VICTIM) {
        return serve_until_killed(&directory).await;
    }
    let rounds = std::env::var(ROUNDS).map_or(ROUNDS_DEFAULT, |text| text.parse().unwrap());
    let mut random = fastrand::Rng::with_seed(7);
    let directory = tempfile::tempdir().unwrap();
    let told = Arc::new(Mutex::new(Told::default()));
    let mut victim = Victim::start(directory.path());
    let mut watcher = Watcher::list(&victim.maps, &told).await;
    for round in 0..rounds {
        let mut tasks = tokio::task::JoinSet::new();
        for writer in 0..WRITERS {
            let prefix = format!("r{round}-w{writer}");
            tasks.spawn(write(victim.maps.clone(), prefix, Arc::clone(&told)));
        }
        let maps = victim.maps.clone();
        let watching = tokio::spawn(async move {
            watcher.follow(&maps, u64::MAX).await;
            watcher
        });
        // Only varies the moment of the kill; nothing is asserted about time.
        tokio::time::sleep(Duration::from_millis(random.u64(20..200))).await;
        victim.kill();
        watcher = watching.await.unwrap();
        tasks.join_all().await;

        victim = Victim::start(directory.path());
        for number in 0..LATE_WRITES {
            let object = json!({"metadata": {"name": format!("r{round}-late-{number}")}});
            let object = serde_json::from_value(object).unwrap();
            let created = victim.maps.create(&PostParams::default(), &object).await.unwrap();
            told.lock().unwrap().note(&created);
        }
        let list = victim.maps.list(&ListParams::default()).await.unwrap();
        let present: BTreeMap<String, u64> =
            list.items.iter().map(|map| (map.name_any(), version(map))).collect();
        let newest = list.metadata.resource_version.unwrap().parse().unwrap();
        watcher.follow(&victim.maps, newest).await;
        assert_eq!(watcher.state, present, "round {round}: what the watch told is what there is");
        let mut told = told.lock().unwrap();
        for map in &list.items {
            told.note(map);
        }
        for (name, last) in std::mem::take(&mut told.acknowledged) {
            assert_eq!(present.get(&name), last.as_ref(), "{name} was acknowledged");
        }
    }
    victim.kill();
}

#[test]
fn an_empty_or_missing_store_file_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    drop(Server::builder().controllers(false).open(directory.path()).unwrap());
    let file = directory.path().join("world.redb");
    std::fs::write(&file, b"").unwrap();
    let outcome = Server::builder().controllers(false).open(directory.path());
    let error = outcome.err().expect("an empty file is no world").to_string();
    assert!(error.contains("world.redb"), "{error}");
    assert_eq!(std::fs::read(&file).unwrap(), b"", "it is left alone");
    std::fs::remove_file(&file).unwrap();
    let outcome = Server::builder().controllers(false).open(directory.path());
    let error = outcome.err().expect("a lost file is no new world").to_string();
    assert!(error.contains("world.redb"), "{error}");
    assert!(!file.exists());
}

#[tokio::test]
async fn a_watch_from_a_version_that_was_never_published_is_expired() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::builder().controllers(false).open(directory.path()).unwrap();
    let maps: Api<ConfigMap> = Api::default_namespaced(Client::new(server.service(), "default"));
    let params = WatchParams::default().timeout(2);
    let never = (server.resource_version() + 1).to_string();
    let mut stream = Box::pin(maps.watch(&params, &never).await.unwrap());
    match stream.try_next().await {
        Ok(Some(WatchEvent::Error(status))) => assert_eq!(status.code, 410),
        other => panic!("unexpected {other:?}"),
    }
    assert!(stream.try_next().await.unwrap().is_none(), "nothing follows");
}

/// Set in the process whose disk is full: its data directory.
const CONFINED: &str = "KOPF_FULL_DISK_TEST_DIRECTORY";

async fn health(server: &Server, path: &str) -> (u16, String) {
    let request = http::Request::builder().uri(path).body(Full::<Bytes>::default()).unwrap();
    let answer = server.service().oneshot(request).await.unwrap();
    let status = answer.status().as_u16();
    let text = answer.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(text.to_vec()).unwrap())
}

/// Writes until the disk is full; prints which writes were acknowledged and rejected.
async fn fill(directory: &str) {
    let server = Server::builder().controllers(false).open(directory).unwrap();
    let client = server.local();
    let object =
        |name: &str| json!({"metadata": {"name": name}, "data": {"k": "x".repeat(20_000)}});
    let mut last = String::new();
    for number in 0.. {
        let name = format!("m{number}");
        match client.create("configmaps", "default", object(&name)).await {
            Ok(_) => println!("\nacknowledged {name}"),
            Err(error) => {
                assert_eq!(error.code, 503, "{error}");
                let refused = client.get(Target::new("configmaps", "default", &name)).await;
                assert_eq!(refused.unwrap_err().code, 404, "a refused write is not seen");
                println!("\nrefused {name}");
                break;
            }
        }
        last = name;
    }
    let target = Target::new("configmaps", "default", &last);
    if client.delete(target, DeleteOptions::default()).await.is_err() {
        assert!(client.get(target).await.is_ok(), "a refused deletion is not seen");
        for path in ["/healthz", "/readyz"] {
            let (status, text) = health(&server, path).await;
            assert_eq!(status, 500, "{text}");
            assert!(text.contains("could not write to the data directory"), "{text}");
        }
    } else {
        println!("\nrefused {last}");
    }
    println!("\ndone");
}

#[tokio::test]
async fn a_full_disk_refuses_writes_and_they_stay_invisible() {
    if let Ok(directory) = std::env::var(CONFINED) {
        return fill(&directory).await;
    }
    let directory = tempfile::tempdir().unwrap();
    // A file size limit simulates a full disk; the signal would end the process.
    let script = "trap '' XFSZ; ulimit -f 6000; exec \"$0\" \"$@\"";
    let confined = Command::new("sh")
        .args(["-c", script])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "durability::a_full_disk_refuses_writes_and_they_stay_invisible"])
        .arg("--nocapture")
        .env(CONFINED, directory.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&confined.stdout);
    assert!(confined.status.success() && said.contains("\ndone"), "{said}");
    let names = |prefix: &str| -> Vec<String> {
        said.lines().filter_map(|line| line.strip_prefix(prefix)).map(str::to_owned).collect()
    };
    let server = Server::builder().controllers(false).open(directory.path()).unwrap();
    let refused = names("refused ");
    assert!(!refused.is_empty(), "the disk was full");
    for name in names("acknowledged ").iter().filter(|name| !refused.contains(name)) {
        let found = server.local().get(Target::new("configmaps", "default", name)).await;
        assert!(found.is_ok(), "{name} is lost");
    }
    for name in refused {
        let found = server.local().get(Target::new("configmaps", "default", &name)).await;
        assert!(found.is_err(), "{name} was refused");
    }
}
