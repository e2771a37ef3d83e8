//! Many writers, many watchers that disconnect and resume: no gaps, no duplicates, the same state.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::TryStreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kopf_apiserver::Server;
use kube::api::{
    Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use kube::{Client, ResourceExt};
use serde_json::json;

type State = BTreeMap<String, String>;

fn version(object: &ConfigMap) -> u64 {
    object.resource_version().unwrap().parse().unwrap()
}

async fn write(maps: Api<ConfigMap>, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..120 {
        let name = format!("m{}", random.u8(0..12));
        let label = if random.bool() { "1" } else { "0" };
        let value = random.u32(..).to_string();
        let object: ConfigMap = serde_json::from_value(json!({
            "metadata": {"name": name, "labels": {"s": label}}, "data": {"v": value},
        }))
        .unwrap();
        // Conflicts are intended: any outcome of a single write is fine.
        let _ = match random.u8(0..4) {
            0 => maps.create(&PostParams::default(), &object).await.map(|_| ()),
            1 => maps.delete(&name, &DeleteParams::default()).await.map(|_| ()),
            _ => {
                let patch = Patch::Merge(&object);
                maps.patch(&name, &PatchParams::default(), &patch).await.map(|_| ())
            }
        };
        tokio::task::yield_now().await;
    }
}

/// Watches with random disconnects until stopped and caught up; returns the replayed state.
async fn follow(maps: Api<ConfigMap>, labels: &str, seed: u64, stop: Arc<AtomicBool>) -> State {
    let mut random = fastrand::Rng::with_seed(seed);
    let params = ListParams::default().labels(labels);
    let list = maps.list(&params).await.unwrap();
    let mut last: u64 = list.metadata.resource_version.unwrap().parse().unwrap();
    let mut state: State =
        list.items.iter().map(|map| (map.name_any(), map.resource_version().unwrap())).collect();
    loop {
        let stopping = stop.load(Ordering::Acquire);
        let mut params = WatchParams::default().labels(labels);
        params.timeout = Some(1);
        let mut stream = Box::pin(maps.watch(&params, &last.to_string()).await.unwrap());
        let quota = if stopping { usize::MAX } else { random.usize(1..20) };
        for _ in 0..quota {
            let Some(event) = stream.try_next().await.unwrap() else { break };
            let (map, alive) = match event {
                WatchEvent::Added(map) => {
                    assert!(!state.contains_key(&map.name_any()), "added twice");
                    (map, true)
                }
                WatchEvent::Modified(map) => {
                    assert!(state.contains_key(&map.name_any()), "modified before added");
                    (map, true)
                }
                WatchEvent::Deleted(map) => {
                    assert!(state.contains_key(&map.name_any()), "deleted before added");
                    (map, false)
                }
                other => panic!("unexpected {other:?}"),
            };
            assert!(version(&map) > last, "versions must rise");
            last = version(&map);
            if alive {
                state.insert(map.name_any(), map.resource_version().unwrap());
            } else {
                state.remove(&map.name_any());
            }
        }
        if stopping {
            return state;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_watcher_replays_the_same_state() {
    let server = Server::builder().controllers(false).build();
    let maps: Api<ConfigMap> = Api::default_namespaced(Client::new(server.service(), "default"));
    let stop = Arc::new(AtomicBool::new(false));
    let mut watchers = Vec::new();
    for seed in 0..10 {
        let labels = if seed % 2 == 0 { "" } else { "s=1" };
        let watcher = follow(maps.clone(), labels, seed, Arc::clone(&stop));
        watchers.push((labels, tokio::spawn(watcher)));
    }
    let writers: Vec<_> = (100..106).map(|seed| tokio::spawn(write(maps.clone(), seed))).collect();
    for writer in writers {
        writer.await.unwrap();
    }
    stop.store(true, Ordering::Release);
    for (labels, watcher) in watchers {
        let replayed = watcher.await.unwrap();
        let list = maps.list(&ListParams::default().labels(labels)).await.unwrap();
        let expected: State = list
            .items
            .iter()
            .map(|map| (map.name_any(), map.resource_version().unwrap()))
            .collect();
        assert_eq!(replayed, expected);
    }
}
