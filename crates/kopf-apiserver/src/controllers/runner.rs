//! Runs controllers: notices changes, keeps their work queues, executes what they ask for.
//!
//! One task per [`Group`]. A group compares the newest snapshot with the one it saw last, so it
//! can neither miss nor queue changes: what it has not seen yet is the difference, however long
//! it was away. Time comes from the server's clock only.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use tokio::sync::watch;

use super::recorder::Recorder;
use super::view::SnapshotWorld;
use crate::local::{DeleteOptions, LocalClient, Patch, Target};
use crate::store::Snapshot;
use crate::{StatusError, User};
use kopf_controllers::announce::{self, Done};
use kopf_controllers::world::{
    Action, Change, Collection, Controller, Interest, Key, Outcome, Seen, World,
};

/// Immediate retries after lost races, before a key has to wait like after other failures.
const RACES_MAX: u32 = 20;
/// Wait after the first failure; doubles with each further one.
const RETRY_DELAY: Duration = Duration::from_millis(5);
/// Longest wait after a failure.
const RETRY_DELAY_MAX: Duration = Duration::from_secs(1000);

/// Changes that concerned nobody in a row, after which a group looks less often.
const BORING_MAX: u32 = 16;
/// How long a bored group lets changes gather.
const GATHERING: Duration = Duration::from_millis(1);

/// How far a group has come.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    /// Everything up to this version has been seen and dealt with.
    pub(crate) version: u64,
    /// When the group will act by itself.
    pub(crate) wake_at: Option<Timestamp>,
    /// How many changes of the stage rules have been dealt with.
    pub(crate) pokes: u64,
    /// Whether a new group that takes up at this version would do as this one does.
    pub(crate) is_at_rest: bool,
}

/// A controller's place in its group, and one of its keys.
type Task = (usize, Key);

/// Controllers that share one task: their runs never overlap.
pub(crate) struct Group {
    client: LocalClient,
    members: Vec<Member>,
    /// The tables that any member wants to hear about; `None` means all.
    tables: Option<HashSet<Collection>>,
    seen: Snapshot,
    queue: VecDeque<Task>,
    queued: HashSet<Task>,
    timers: BTreeMap<Timestamp, HashSet<Task>>,
    failures: HashMap<Task, u32>,
    pokes: watch::Receiver<u64>,
    progress: watch::Sender<Progress>,
    /// Writes events about what the members do, if the server shows them.
    recorder: Option<Recorder>,
}

struct Member {
    controller: Box<dyn Controller>,
    interest: Interest,
    client: LocalClient,
}

impl Group {
    /// A group that starts with what `seen` does not have yet; with everything, if that is empty.
    ///
    /// `pokes` counts changes outside of the world that concern its controllers.
    pub(crate) fn new(
        client: &LocalClient,
        controllers: Vec<Box<dyn Controller>>,
        mut pokes: watch::Receiver<u64>,
        seen: Snapshot,
    ) -> Self {
        // Changes of the stage rules before the group began also concern it.
        pokes.mark_changed();
        let members: Vec<Member> = controllers
            .into_iter()
            .map(|controller| {
                let (user, manager) = controller.identity();
                let user = User::new(user, ["system:masters", "system:authenticated"]);
                let client = client.acting_as(user, manager);
                Member { interest: controller.interest(), controller, client }
            })
            .collect();
        Self {
            client: client.clone(),
            tables: tables_of(&members),
            members,
            seen,
            queue: VecDeque::new(),
            queued: HashSet::new(),
            timers: BTreeMap::new(),
            failures: HashMap::new(),
            pokes,
            progress: watch::Sender::new(Progress::default()),
            recorder: None,
        }
    }

    /// The same group, which records what its members do as events.
    #[must_use]
    pub(crate) fn recording(mut self, is_recording: bool) -> Self {
        self.recorder = is_recording.then(Recorder::default);
        self
    }

    /// Tells how far the group has come.
    pub(crate) fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// Works until the task is aborted.
    pub(crate) async fn run(mut self) {
        let mut newest = self.client.newest_version();
        let mut boring = 0;
        loop {
            if boring > BORING_MAX {
                // A flood of changes that concern nobody here is looked at in batches.
                tokio::time::sleep(GATHERING).await;
            }
            newest.mark_unchanged();
            self.take_due();
            self.absorb();
            let pokes = self.heed_poke();
            boring = if self.queue.is_empty() { boring + 1 } else { 0 };
            while let Some(task) = self.queue.pop_front() {
                self.queued.remove(&task);
                self.work(task).await;
                self.take_due();
                self.absorb();
            }
            let wake_at = self.timers.keys().next().copied();
            let version = self.seen.resource_version();
            let is_at_rest = self.is_at_rest();
            self.progress.send_replace(Progress { version, wake_at, pokes, is_at_rest });
            let clock = Arc::clone(self.client.clock());
            let alarm = async {
                match wake_at {
                    Some(wake_at) => clock.sleep(until(clock.now(), wake_at)).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                changed = newest.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
                poked = self.pokes.changed() => {
                    if poked.is_err() {
                        return;
                    }
                    self.pokes.mark_changed();
                }
                () = alarm => {}
            }
        }
    }

    fn is_at_rest(&self) -> bool {
        self.queue.is_empty()
            && self.timers.is_empty()
            && self.failures.is_empty()
            && self.members.iter().all(|member| member.controller.is_blank())
    }

    fn take_due(&mut self) {
        if self.timers.is_empty() {
            return;
        }
        let now = self.client.clock().now();
        while let Some(entry) = self.timers.first_entry().filter(|entry| *entry.key() <= now) {
            for task in entry.remove() {
                self.enqueue(task);
            }
        }
    }

    fn heed_poke(&mut self) -> u64 {
        if self.pokes.has_changed().unwrap_or(false) {
            let world = SnapshotWorld::new(&self.seen, &self.client);
            let mut found = Vec::new();
            for (index, member) in self.members.iter_mut().enumerate() {
                let keys = member.controller.poked(&world);
                found.extend(keys.into_iter().map(|key| (index, key)));
            }
            for task in found {
                self.enqueue(task);
            }
        }
        *self.pokes.borrow_and_update()
    }

    fn enqueue(&mut self, task: Task) {
        if self.queued.insert(task.clone()) {
            self.queue.push_back(task);
        }
    }

    /// Tells the controllers what changed since the snapshot that they saw last.
    fn absorb(&mut self) {
        let newest = self.client.snapshot();
        if newest.resource_version() == self.seen.resource_version() {
            return;
        }
        let previous = std::mem::replace(&mut self.seen, newest);
        let world = SnapshotWorld::new(&self.seen, &self.client);
        let mut found = Vec::new();
        for table in previous.changed_tables(&self.seen) {
            let collection = Collection::of_table(&table);
            if self.tables.as_ref().is_some_and(|tables| !tables.contains(&collection)) {
                continue;
            }
            let members: Vec<usize> = (0..self.members.len())
                .filter(|index| is_interested(&self.members[*index].interest, &collection))
                .collect();
            if members.is_empty() {
                continue;
            }
            previous.each_change(&self.seen, &table, &mut |(old, new)| {
                let change = Change {
                    collection: collection.clone(),
                    old: old.map(Seen::of),
                    new: new.map(Seen::of),
                };
                for change in split_replacement(change) {
                    for index in &members {
                        let keys = self.members[*index].controller.concerned(&change, &world);
                        found.extend(keys.into_iter().map(|key| (*index, key)));
                    }
                }
            });
        }
        for task in found {
            self.enqueue(task);
        }
    }

    async fn work(&mut self, task: Task) {
        let now = self.client.clock().now();
        let world = SnapshotWorld::new(&self.seen, &self.client);
        let member = &mut self.members[task.0];
        let run = AssertUnwindSafe(|| member.controller.reconcile(&task.1, &world, now));
        let Ok(outcome) = std::panic::catch_unwind(run) else {
            // Our own bug; the other keys of the group must not suffer from it.
            let name = member.controller.name();
            tracing::error!(controller = name, key = ?task.1, "controller gave up on an object");
            return;
        };
        let seen = self.recorder.as_ref().and_then(|_| Witness::of(&task.1, &outcome, &world));
        let (names, result) = execute(&member.client, &outcome).await;
        if let Some(seen) = seen {
            self.announce(&task, &seen, &outcome, &names, now).await;
        }
        match result {
            Ok(()) => {
                self.failures.remove(&task);
            }
            Err(error) => {
                let name = self.members[task.0].controller.name();
                tracing::debug!(controller = name, key = ?task.1, %error, "controller will retry");
                self.retry(&task, &error, now);
            }
        }
        if let Some(wake_at) = outcome.wake_at {
            self.timers.entry(wake_at).or_default().insert(task);
        }
    }

    /// Records the writes that succeeded.
    async fn announce(
        &mut self,
        task: &Task,
        seen: &Witness,
        outcome: &Outcome,
        names: &[String],
        now: Timestamp,
    ) {
        let Some(recorder) = &mut self.recorder else { return };
        let controller = self.members[task.0].controller.name();
        let client = &self.members[task.0].client;
        let writes = outcome.actions.iter().zip(&seen.before).zip(names);
        for ((action, before), name) in writes.filter(|(_, name)| !name.is_empty()) {
            let (subject, before) = (&*seen.subject, before.as_deref());
            let done = Done { controller, subject, action, before, name };
            for announcement in announce::announcements(&done) {
                recorder.record(client, &task.1.collection, subject, &announcement, now).await;
            }
        }
    }

    fn retry(&mut self, task: &Task, error: &StatusError, now: Timestamp) {
        let failures = self.failures.entry(task.clone()).or_default();
        *failures += 1;
        if error.is_conflict() && *failures <= RACES_MAX {
            self.enqueue(task.clone());
            return;
        }
        let delay = RETRY_DELAY.saturating_mul(1 << (*failures - 1).min(20)).min(RETRY_DELAY_MAX);
        let delay = jiff::SignedDuration::try_from(delay).unwrap_or_default();
        let retry_at = now.checked_add(delay).unwrap_or(Timestamp::MAX);
        self.timers.entry(retry_at).or_default().insert(task.clone());
    }
}

/// What a controller saw before it wrote.
struct Witness {
    subject: Seen,
    /// The objects that each action changes.
    before: Vec<Option<Seen>>,
}

impl Witness {
    /// Nothing if the subject is gone, or if there is nothing to write.
    fn of(subject: &Key, outcome: &Outcome, world: &dyn World) -> Option<Self> {
        if outcome.actions.is_empty() {
            return None;
        }
        let before = outcome.actions.iter().map(|action| world.get(action.key()?));
        Some(Self { subject: world.get(subject)?, before: before.collect() })
    }
}

/// What the members of a group want to hear about together.
fn tables_of(members: &[Member]) -> Option<HashSet<Collection>> {
    let mut tables = HashSet::new();
    for member in members {
        match &member.interest {
            Interest::Everything => return None,
            Interest::Collections(collections) => tables.extend(collections.iter().cloned()),
        }
    }
    Some(tables)
}

fn until(now: Timestamp, later: Timestamp) -> Duration {
    Duration::try_from(now.duration_until(later)).unwrap_or_default()
}

fn is_interested(interest: &Interest, collection: &Collection) -> bool {
    match interest {
        Interest::Everything => true,
        Interest::Collections(collections) => collections.contains(collection),
    }
}

/// An object that was deleted and created again between two looks is two changes.
fn split_replacement(change: Change) -> Vec<Change> {
    match (&change.old, &change.new) {
        (Some(old), Some(new)) if crate::fields::uid(old) != crate::fields::uid(new) => {
            vec![Change { new: None, ..change.clone() }, Change { old: None, ..change }]
        }
        _ => vec![change],
    }
}

/// Executes the writes in order; the first failure that matters ends the run.
///
/// Also returns the names of the objects that were written.
async fn execute(
    client: &LocalClient,
    outcome: &Outcome,
) -> (Vec<String>, Result<(), StatusError>) {
    let mut names = Vec::with_capacity(outcome.actions.len());
    for action in &outcome.actions {
        match perform(client, action).await.or_else(|error| tolerate(action, error)) {
            Ok(name) => names.push(name),
            Err(error) => return (names, Err(error)),
        }
    }
    (names, Ok(()))
}

/// The name of the written object; none if nothing had to be done.
async fn perform(client: &LocalClient, action: &Action) -> Result<String, StatusError> {
    match action {
        Action::Create { collection, object } => {
            let namespace = crate::fields::namespace(object);
            let created = client.create(collection.table(), namespace, object.clone()).await?;
            return Ok(crate::fields::name(created.content()).to_owned());
        }
        Action::Update { key, subresource, object } => {
            client.update(target(key).through(subresource), object.clone()).await?;
        }
        Action::Patch { key, subresource, patch } => {
            client.patch(target(key).through(subresource), Patch::Merge(patch.clone())).await?;
        }
        Action::Apply { key, subresource, object } => {
            client
                .patch(target(key).through(subresource), Patch::Apply(object.clone(), true))
                .await?;
        }
        Action::Bind { key, node } => {
            let binding = json!({
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": { "name": key.name, "namespace": key.namespace },
                "target": { "apiVersion": "v1", "kind": "Node", "name": node },
            });
            client.bind(&key.namespace, &key.name, &binding).await?;
        }
        Action::Delete { key, uid, propagation, grace_seconds } => {
            let options = DeleteOptions {
                propagation_policy: propagation.map_or("", |policy| policy.as_str()).to_owned(),
                grace_period_seconds: *grace_seconds,
                uid: Some(uid.clone()).filter(|uid| !uid.is_empty()),
                resource_version: None,
            };
            client.delete(target(key), options).await?;
        }
    }
    Ok(action.key().map(|key| key.name.clone()).unwrap_or_default())
}

fn target(key: &Key) -> Target<'_> {
    Target::new(key.collection.table(), &key.namespace, &key.name)
}

/// Failures that mean the wish is fulfilled or has become pointless.
fn tolerate(action: &Action, error: StatusError) -> Result<String, StatusError> {
    let is_pointless = match action {
        Action::Create { .. } => error.is_already_exists() || is_terminating(&error),
        Action::Update { .. }
        | Action::Patch { .. }
        | Action::Apply { .. }
        | Action::Bind { .. } => error.is_not_found(),
        Action::Delete { .. } => error.is_not_found() || error.is_conflict(),
    };
    if is_pointless { Ok(String::new()) } else { Err(error) }
}

fn is_terminating(error: &StatusError) -> bool {
    let causes = error.details.as_deref().map_or(&[][..], |details| &details.causes);
    causes.iter().any(|cause| cause.reason == "NamespaceTerminating")
}
