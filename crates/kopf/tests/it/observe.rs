//! Observers of children on the embedded server: called when children change, with all children.

use k8s_openapi::api::core::v1::ConfigMap;
use kopf::children::{Children, Owner};
use kopf::input::Stopped;
use kopf::prelude::*;
use kopf_testing::{RequestMatcher, Verb, World};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Album", namespaced, status = "AlbumStatus")]
struct AlbumSpec {
    songs: Vec<String>,
    /// Where to put the songs, if not beside the album.
    #[serde(default)]
    elsewhere: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
struct AlbumStatus {
    #[serde(default)]
    songs: Vec<String>,
    /// How often the observer has failed.
    #[serde(default)]
    failures: u32,
}

/// A config map per song.
#[kopf::on::create(Album, backoff = "10s", needs = ["create,patch configmaps"])]
#[kopf::on::update(Album, field = "spec")]
async fn record(album: &Album, owner: Owner, client: Client) -> Result {
    for song in &album.spec.songs {
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"title": song},
            "metadata": {"name": song, "namespace": album.spec.elsewhere},
        });
        let map: ConfigMap = serde_json::from_value(map)?;
        owner.apply(&client, map).await?;
    }
    Ok(())
}

/// The titles of all songs; one of them is refused at first.
#[kopf::on::observe(Album, children(ConfigMap), backoff = "10s")]
async fn listen(songs: &Children<ConfigMap>, status: &mut Status<AlbumStatus>) -> Result {
    let title = |song: &ConfigMap| song.data.as_ref()?.get("title").cloned();
    let titles: Vec<String> = songs.iter().filter_map(title).collect();
    if titles.iter().any(|title| title == "noise") && status.failures < 2 {
        status.failures += 1;
        return Err(kopf::temporary("what a noise").retry_in(5.secs()));
    }
    status.songs = titles;
    Ok(())
}

fn operator() -> kopf::Operator {
    kopf::operator!("albums", [record, listen])
}

fn album(songs: &[&str]) -> Album {
    let songs = songs.iter().map(|song| (*song).to_owned()).collect();
    Album::new("blue", AlbumSpec { songs, elsewhere: None })
}

async fn songs(world: &World) -> Vec<String> {
    let album: Album = world.get("blue").await.expect("the album exists");
    album.status.unwrap_or_default().songs
}

fn writes_of(world: &World, resource: &str, subresource: &str) -> usize {
    let writes = RequestMatcher::any().verb(Verb::Patch).resource(resource);
    world.server().requests(&writes.subresource(subresource)).len()
}

#[test]
fn changes_creations_and_deletions_of_children_are_seen() {
    kopf_testing::run(|world: World| async move {
        let running = world.start(operator()).await;
        world.create(&album(&["carey", "river"])).await.expect("it is created");
        world.settled().await;
        assert_eq!(songs(&world).await, ["carey", "river"]);
        let patch = json!({"data": {"title": "California"}});
        world.patch::<ConfigMap>("carey", &patch).await.expect("it is patched");
        world.settled().await;
        assert_eq!(songs(&world).await, ["California", "river"]);
        world.delete::<ConfigMap>("river").await.expect("it is deleted");
        world.settled().await;
        assert_eq!(songs(&world).await, ["California"]);
        let unlabel = json!({"metadata": {"labels": {"kopf.dev/owner": null}}});
        world.patch::<ConfigMap>("carey", &unlabel).await.expect("it is patched");
        world.settled().await;
        assert_eq!(songs(&world).await, Vec::<String>::new());
        running.stop().await.expect("it stops");
    });
}

#[test]
fn applied_children_are_seen_in_the_same_write() {
    kopf_testing::run(|world: World| async move {
        let running = world.start(operator()).await;
        world.create(&album(&["carey", "river", "blue"])).await.expect("it is created");
        world.settled().await;
        assert_eq!(songs(&world).await, ["blue", "carey", "river"]);
        assert_eq!(writes_of(&world, "configmaps", ""), 3, "one application each");
        assert_eq!(writes_of(&world, "albums.example.com", "status"), 1, "one write of the status");
        world.advance(600.secs()).await;
        assert_eq!(writes_of(&world, "configmaps", ""), 3);
        assert_eq!(writes_of(&world, "albums.example.com", "status"), 1, "and no more of them");
        running.stop().await.expect("it stops");
    });
}

#[test]
fn changes_during_downtime_are_seen_afterwards() {
    kopf_testing::run(|world: World| async move {
        let running = world.start(operator()).await;
        world.create(&album(&["carey", "river"])).await.expect("it is created");
        world.settled().await;
        running.abort();
        world.delete::<ConfigMap>("river").await.expect("it is deleted");
        world.settled().await;
        assert_eq!(songs(&world).await, ["carey", "river"], "nobody is there to see it");
        let running = world.start(operator()).await;
        world.settled().await;
        assert_eq!(songs(&world).await, ["carey"]);
        running.stop().await.expect("it stops");
    });
}

#[test]
fn failed_observers_are_retried_without_a_condition() {
    kopf_testing::run(|world: World| async move {
        let running = world.start(operator()).await;
        world.create(&album(&["noise"])).await.expect("it is created");
        world.settled().await;
        assert_eq!(songs(&world).await, Vec::<String>::new());
        world.advance(11.secs()).await;
        let status = world.get::<Album>("blue").await.expect("it exists").status;
        let status = status.expect("a status");
        assert_eq!((status.songs.as_slice(), status.failures), (&["noise".to_owned()][..], 2));
        let api: kube::Api<kube::api::DynamicObject> = kube::Api::namespaced_with(
            world.client(),
            "default",
            &kube::api::ApiResource::erase::<Album>(&()),
        );
        let album = api.get("blue").await.expect("it exists");
        assert_eq!(album.data["status"].get("conditions"), None);
        running.stop().await.expect("it stops");
    });
}

#[test]
fn children_are_applied_only_in_the_namespace_of_their_owner() {
    kopf_testing::run(|world: World| async move {
        let running = world.start(operator()).await;
        let mut album = album(&["carey"]);
        album.spec.elsewhere = Some("kube-public".into());
        world.create(&album).await.expect("it is created");
        world.settled().await;
        assert_eq!(writes_of(&world, "configmaps", ""), 0, "nothing that nobody would delete");
        running.stop().await.expect("it stops");
    });
}

#[test]
fn applying_without_a_watch_works_too() {
    kopf_testing::run(|world: World| async move {
        let running = world.start(kopf::operator!("albums", [record])).await;
        let parent = world.create(&album(&["carey"])).await.expect("it is created");
        world.settled().await;
        let map: ConfigMap = world.get("carey").await.expect("it was applied");
        let labels = map.metadata.labels.expect("labels");
        assert_eq!(Some(&labels["kopf.dev/owner"]), parent.metadata.uid.as_ref());
        assert_eq!(map.metadata.owner_references.expect("an owner")[0].name, "blue");
        running.stop().await.expect("it stops");
    });
}

/// The titles of all songs, now and then.
#[kopf::on::timer(Album, interval = "1m", children(ConfigMap))]
async fn listen_in(songs: &Children<ConfigMap>, status: &mut Status<AlbumStatus>) {
    status.songs =
        songs.iter().filter_map(|song| song.data.as_ref()?.get("title").cloned()).collect();
}

#[derive(Default)]
struct DeletionLog(std::sync::Mutex<Vec<String>>);

#[test]
fn other_handlers_look_at_children_when_they_are_called() {
    kopf_testing::run(|world: World| async move {
        let part = |songs: Children<ConfigMap>, deletions: State<std::sync::Arc<DeletionLog>>| async move {
            let names = songs.iter().filter_map(|song| song.metadata.name.clone());
            deletions.0.lock().expect("nobody panics").extend(names);
        };
        let part = kopf::closure::delete("albums.example.com", part)
            .children([kopf::closure::of::<ConfigMap>()]);
        let deletions = std::sync::Arc::new(DeletionLog::default());
        let operator = kopf::operator!("albums", [record, listen_in]).with(part);
        let running = world.start(operator.state(std::sync::Arc::clone(&deletions))).await;
        world.create(&album(&["carey", "river"])).await.expect("it is created");
        world.advance(61.secs()).await;
        assert_eq!(songs(&world).await, ["carey", "river"]);
        let patch = json!({"data": {"title": "California"}});
        world.patch::<ConfigMap>("carey", &patch).await.expect("it is patched");
        world.advance(1.secs()).await;
        assert_eq!(songs(&world).await, ["carey", "river"], "nobody is called for that");
        world.advance(60.secs()).await;
        assert_eq!(songs(&world).await, ["California", "river"]);
        world.delete::<Album>("blue").await.expect("it is deleted");
        world.settled().await;
        assert_eq!(*deletions.0.lock().expect("nobody panics"), ["carey", "river"]);
        running.stop().await.expect("it stops");
    });
}

/// The number of songs, minute by minute, after the daemon has begun without any.
#[kopf::on::daemon(Album, children(ConfigMap))]
async fn count(songs: &Children<ConfigMap>, counts: State<Counts>, stopped: Stopped) -> Result {
    while !stopped.wait(60.secs()).await {
        let mut counts = counts.lock().expect("no test panics while counting");
        counts.push((songs.len(), songs.now()?.len()));
    }
    Ok(())
}

type Counts = std::sync::Arc<std::sync::Mutex<Vec<(usize, usize)>>>;

#[test]
fn daemons_can_look_again() {
    kopf_testing::run(|world: World| async move {
        let counts = Counts::default();
        let operator = kopf::operator!("albums", [record, count]).state(counts.clone());
        let running = world.start(operator).await;
        world.create(&album(&[])).await.expect("it is created");
        world.settled().await;
        let songs = json!({"spec": {"songs": ["carey", "river"]}});
        world.patch::<Album>("blue", &songs).await.expect("it is patched");
        world.advance(61.secs()).await;
        world.delete::<ConfigMap>("river").await.expect("it is deleted");
        world.advance(60.secs()).await;
        assert_eq!(*counts.lock().expect("no test panics while counting"), [(0, 2), (0, 1)]);
        running.stop().await.expect("it stops");
    });
}
