//! Replicas that share the objects: each object belongs to one of them, and moves without being
//! handled twice.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kopf_core::handler::{DaemonOptions, Handler, HandlerKind};
use kopf_core::invoke::Output;
use kopf_core::settings::{LeadershipMode, Settings};
use kopf_engine::Running;
use parking_lot::Mutex;
use serde_json::json;

use crate::proxy::{Journal, Proxy};
use crate::world::{World, async_handler, eventually, handler};

const RANGES: u32 = 8;
const OBJECTS: usize = 24;

/// The actions of all replicas, as seen from outside.
#[derive(Clone, Default)]
struct Observer(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    /// How often a handler was called for an object.
    calls: BTreeMap<String, usize>,
    /// Which replicas currently have a daemon for an object.
    daemons: BTreeMap<String, Vec<&'static str>>,
    violations: Vec<String>,
}

/// A daemon that is recorded as long as it exists, however it ends.
struct Watched {
    observer: Observer,
    name: String,
    replica: &'static str,
}

impl Observer {
    fn watch(&self, name: &str, replica: &'static str) -> Watched {
        let mut seen = self.0.lock();
        let owners = seen.daemons.entry(name.to_owned()).or_default();
        owners.push(replica);
        let owners = owners.clone();
        if owners.len() > 1 {
            seen.violations.push(format!("{name} is served by {owners:?}"));
        }
        Watched { observer: self.clone(), name: name.to_owned(), replica }
    }

    fn owners(&self) -> BTreeMap<String, Vec<&'static str>> {
        self.0.lock().daemons.clone()
    }

    fn are_all_served(&self, by: &[&'static str]) -> bool {
        let owners = self.owners();
        owners.len() == OBJECTS
            && owners.values().all(|it| it.len() == 1 && by.contains(&it[0]))
            && by.iter().all(|replica| owners.values().any(|it| it.contains(replica)))
    }

    fn calls(&self, handler: &str) -> Vec<usize> {
        let seen = self.0.lock();
        let is_it = |(key, _): &(&String, &usize)| key.starts_with(handler);
        seen.calls.iter().filter(is_it).map(|(_, count)| *count).collect()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let mut seen = self.observer.0.lock();
        let owners = seen.daemons.entry(self.name.clone()).or_default();
        owners.retain(|it| *it != self.replica);
    }
}

fn handlers(observer: &Observer, replica: &'static str) -> Vec<Handler> {
    let counting = |id: &'static str, kind: HandlerKind| {
        let observer = observer.clone();
        handler(id, kind, move |call| {
            let name = call.subject.as_ref().expect("an object").object.name().to_owned();
            *observer.0.lock().calls.entry(format!("{id} {name}")).or_default() += 1;
            Ok(Output::Nothing)
        })
    };
    let observer = observer.clone();
    let options = HandlerKind::Daemon(DaemonOptions::default());
    let daemon = async_handler("daemon", options, move |call| {
        let name = call.subject.as_ref().expect("an object").object.name().to_owned();
        let observer = observer.clone();
        async move {
            let _watched = observer.watch(&name, replica);
            call.stopped.expect("a stop flag").wait(None).await;
            Ok(Output::Nothing)
        }
    });
    vec![counting("create", HandlerKind::Create), counting("update", HandlerKind::Update), daemon]
}

fn start(world: &World, observer: &Observer, replica: &'static str) -> Running {
    start_with(world, replica, handlers(observer, replica))
}

fn start_with(world: &World, replica: &'static str, handlers: Vec<Handler>) -> Running {
    start_as(world, replica, handlers, Settings::default())
}

fn start_as(
    world: &World,
    replica: &'static str,
    handlers: Vec<Handler>,
    settings: Settings,
) -> Running {
    start_through(Journal::default(), world, replica, handlers, settings)
}

fn start_through(
    journal: Journal,
    world: &World,
    replica: &'static str,
    handlers: Vec<Handler>,
    mut settings: Settings,
) -> Running {
    let proxy = Proxy { service: world.server.service(), journal };
    settings.posting.enabled = false;
    settings.peering.standalone = true;
    settings.leadership.mode = LeadershipMode::Shards;
    settings.leadership.name = Some("demo".into());
    settings.leadership.namespace = Some("default".into());
    settings.leadership.ranges = RANGES;
    let builder = world.engine(handlers).identity(replica);
    builder.client(kube::Client::new(proxy, "default")).settings(settings).build().start()
}

fn ranges(running: &Running) -> usize {
    let leadership = running.status().snapshot().leadership;
    leadership.and_then(|it| it.ranges).map_or(0, |(held, _)| held.len())
}

fn objects(running: &Running) -> usize {
    running.status().snapshot().objects
}

async fn create_all(world: &World) {
    for number in 0..OBJECTS {
        world.create(&format!("object-{number}"), json!({"x": 1})).await;
    }
}

async fn edit_all(world: &World, value: i64) {
    for number in 0..OBJECTS {
        world.merge(&format!("object-{number}"), json!({"spec": {"x": value}})).await;
    }
    for number in 0..OBJECTS {
        world.until_handled(&format!("object-{number}")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn every_object_is_served_by_exactly_one_of_the_replicas() {
    let (world, observer) = (World::new().await, Observer::default());
    let one = start(&world, &observer, "one");
    eventually("all ranges", || ranges(&one) == RANGES as usize).await;
    create_all(&world).await;
    eventually("one replica for all", || observer.are_all_served(&["one"])).await;
    // Two more join and get their shares; finished work is not repeated.
    let two = start(&world, &observer, "two");
    let three = start(&world, &observer, "three");
    eventually("three shares", || observer.are_all_served(&["one", "two", "three"])).await;
    let all = [&one, &two, &three];
    eventually("even shares", || all.iter().all(|it| (2..=3).contains(&ranges(it)))).await;
    // No replica keeps objects of others.
    let kept = || all.iter().map(|it| objects(it)).sum::<usize>();
    eventually("every object at one place", || kept() == OBJECTS).await;
    edit_all(&world, 2).await;
    assert_eq!(observer.calls("create"), [1; OBJECTS]);
    assert_eq!(observer.calls("update"), [1; OBJECTS]);
    // One leaves: the others get its share at once.
    two.stop().await.expect("a clean end");
    let left = tokio::time::Instant::now();
    eventually("two shares", || observer.are_all_served(&["one", "three"])).await;
    // On the controlled clock, on which only waiting takes time.
    assert!(left.elapsed() < Duration::from_secs(1), "{:?}", left.elapsed());
    edit_all(&world, 3).await;
    // One dies: the other gets its share when its Lease has expired.
    one.abort();
    edit_all(&world, 4).await;
    eventually("one share", || observer.are_all_served(&["three"])).await;
    assert_eq!(observer.calls("create"), [1; OBJECTS]);
    assert_eq!(observer.calls("update"), [3; OBJECTS]);
    assert_eq!(observer.0.lock().violations, Vec::<String>::new());
    three.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn indexes_are_complete_on_every_replica() {
    let (world, observer) = (World::new().await, Observer::default());
    let indexing = || {
        let mut handlers = handlers(&observer, "any");
        handlers.push(handler("index", HandlerKind::Index, |_| Ok(Output::Nothing)));
        handlers
    };
    let replicas = ["one", "two"].map(|it| start_with(&world, it, indexing()));
    eventually("two shares", || replicas.iter().all(|it| ranges(it) == 4)).await;
    create_all(&world).await;
    eventually("all objects", || replicas.iter().all(|it| objects(it) == OBJECTS)).await;
    eventually("all created", || observer.calls("create") == [1; OBJECTS]).await;
    for replica in replicas {
        replica.stop().await.expect("a clean end");
    }
}

#[tokio::test(start_paused = true)]
async fn objects_that_are_created_while_shares_move_are_handled_once() {
    let (world, observer) = (World::new().await, Observer::default());
    let mut replicas = vec![start(&world, &observer, "one")];
    for (number, name) in ["two", "three", "four", "five"].into_iter().enumerate() {
        for place in 0..OBJECTS / 4 {
            world.create(&format!("object-{number}-{place}"), json!({"x": 1})).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
            if place == 2 {
                replicas.push(start(&world, &observer, name));
            }
            if place == 4 && number % 2 == 1 {
                replicas.remove(0).stop().await.expect("a clean end");
            }
        }
    }
    eventually("all created", || observer.calls("create").len() == OBJECTS).await;
    let everybody = ["three", "four", "five"];
    eventually("all served", || observer.are_all_served(&everybody)).await;
    let kept = || replicas.iter().map(objects).sum::<usize>();
    eventually("every object at one place", || kept() == OBJECTS).await;
    assert_eq!(observer.calls("create"), [1; OBJECTS]);
    assert_eq!(observer.0.lock().violations, Vec::<String>::new());
    for replica in replicas {
        replica.stop().await.expect("a clean end");
    }
}

#[tokio::test(start_paused = true)]
async fn the_ranges_of_a_dead_replica_move_within_a_second_after_its_lease_has_expired() {
    for second in 0..5 {
        let (world, observer) = (World::new().await, Observer::default());
        let mut settings = Settings::default();
        // Others renew their own Leases long after the expiry.
        settings.leadership.retry_period = Duration::from_millis(4900);
        let start = |it| start_as(&world, it, handlers(&observer, it), settings.clone());
        let (one, two) = (start("one"), start("two"));
        eventually("two shares", || ranges(&one) == 4 && ranges(&two) == 4).await;
        tokio::time::sleep(Duration::from_secs(20 + second)).await;
        one.abort();
        let died = tokio::time::Instant::now();
        eventually("one share", || ranges(&two) == RANGES as usize).await;
        assert!(died.elapsed() <= Duration::from_secs(16), "{:?}", died.elapsed());
        two.stop().await.expect("a clean end");
    }
}

#[tokio::test(start_paused = true)]
async fn changes_are_handled_while_added_ranges_are_listed() {
    let (world, observer) = (World::new().await, Observer::default());
    let mut settings = Settings::default();
    settings.watching.chunk_size = Some(2);
    let journal = Journal::default();
    let handlers = |replica| handlers(&observer, replica);
    let one = start_through(journal.clone(), &world, "one", handlers("one"), settings.clone());
    let two = start_as(&world, "two", handlers("two"), settings);
    eventually("two shares", || ranges(&one) == 4 && ranges(&two) == 4).await;
    create_all(&world).await;
    eventually("both serve", || observer.are_all_served(&["one", "two"])).await;
    let own: Vec<String> = observer
        .owners()
        .into_iter()
        .filter_map(|(name, owners)| owners.contains(&"one").then_some(name))
        .collect();
    // The list of the other half does not end.
    journal.hold_pages(true);
    two.abort();
    eventually("all ranges", || ranges(&one) == RANGES as usize).await;
    for number in 0..OBJECTS {
        world.merge(&format!("object-{number}"), json!({"spec": {"x": 2}})).await;
    }
    for name in &own {
        world.until_handled(name).await;
    }
    assert!(observer.calls("update").len() < OBJECTS, "the list has ended");
    // An object that is deleted during the list does not come back.
    let gone = (0..OBJECTS).map(|it| format!("object-{it}")).find(|it| !own.contains(it));
    let gone = gone.expect("an object of the other replica");
    world.delete(&gone).await;
    journal.hold_pages(false);
    for number in 0..OBJECTS {
        let name = format!("object-{number}");
        if name != gone {
            world.until_handled(&name).await;
        }
    }
    eventually("the deleted object is forgotten", || objects(&one) == OBJECTS - 1).await;
    assert!(observer.calls("update").iter().all(|calls| *calls == 1));
    one.stop().await.expect("a clean end");
}
