//! Runs controllers: detects changes, keeps their work queues, executes their actions.
//!
//! One task per [`Group`]. A group compares the newest snapshot with the one it saw last, so it can
//! neither miss nor queue changes: however long it was away, it sees the whole difference. Time
//! comes from the server's clock only.

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

/// Immediate retries after conflicts, before a key is delayed as after other failures.
const CONFLICTS_MAX: u32 = 20;
/// The delay after the first failure; doubles with each further one.
const RETRY_DELAY: Duration = Duration::from_millis(5);
/// The maximum delay after a failure.
const RETRY_DELAY_MAX: Duration = Duration::from_secs(1000);

/// The number of consecutive irrelevant changes after which a group polls less often.
const IRRELEVANT_MAX: u32 = 16;
/// How long changes are batched after that.
const BATCH_DELAY: Duration = Duration::from_millis(1);

/// The progress of a group.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    /// Everything up to this version has been handled.
    pub(crate) version: u64,
    /// The time at which the group will act without a change.
    pub(crate) wake_at: Option<Timestamp>,
    /// How many changes of the stage rules have been handled.
    pub(crate) pokes: u64,
    /// Whether a new group that starts at this version would behave like this one.
    pub(crate) is_at_rest: bool,
}

/// The index of a controller in its group, and one of its keys.
type Task = (usize, Key);

/// Controllers that share one task: their runs never overlap.
pub(crate) struct Group {
    client: LocalClient,
    members: Vec<Member>,
    /// The tables that any member watches; `None` means all.
    tables: Option<HashSet<Collection>>,
    seen: Snapshot,
    queue: VecDeque<Task>,
    queued: HashSet<Task>,
    timers: BTreeMap<Timestamp, HashSet<Task>>,
    failures: HashMap<Task, u32>,
    pokes: watch::Receiver<u64>,
    progress: watch::Sender<Progress>,
    /// Records events about the members' actions, if enabled.
    recorder: Option<Recorder>,
}

struct Member {
    controller: Box<dyn Controller>,
    interest: Interest,
    client: LocalClient,
}

impl Group {
    /// A group that starts with the changes since `seen`, or with everything if that is empty.
    ///
    /// `pokes` counts changes outside of the store that affect its controllers.
    pub(crate) fn new(
        client: &LocalClient,
        controllers: Vec<Box<dyn Controller>>,
        mut pokes: watch::Receiver<u64>,
        seen: Snapshot,
    ) -> Self {
        // The group also handles changes of the stage rules from before it started.
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

    /// The same group, but recording events about its members' actions.
    #[must_use]
    pub(crate) fn recording(mut self, is_recording: bool) -> Self {
        self.recorder = is_recording.then(Recorder::default);
        self
    }

    /// The progress of the group.
    pub(crate) fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// Runs until the task is aborted.
    pub(crate) async fn run(mut self) {
        let mut newest = self.client.newest_version();
        let mut irrelevant = 0;
        loop {
            if irrelevant > IRRELEVANT_MAX {
                // Many irrelevant changes in a row are handled in batches.
                tokio::time::sleep(BATCH_DELAY).await;
            }
            newest.mark_unchanged();
            self.take_due();
            self.dispatch_changes();
            let pokes = self.take_pokes();
            irrelevant = if self.queue.is_empty() { irrelevant + 1 } else { 0 };
            while let Some(task) = self.queue.pop_front() {
                self.queued.remove(&task);
                // Boxed, since the future of a request is large and most groups are idle.
                Box::pin(self.work(task)).await;
                self.take_due();
                self.dispatch_changes();
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

    fn take_pokes(&mut self) -> u64 {
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

    /// Passes the changes since the last snapshot to the controllers.
    fn dispatch_changes(&mut self) {
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
            // A bug in a controller must not affect the other keys of the group.
            let name = member.controller.name();
            tracing::error!(controller = name, key = ?task.1, "controller gave up on an object");
            return;
        };
        let seen = self.recorder.as_ref().and_then(|_| StateBefore::of(&task.1, &outcome, &world));
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

    /// Records events for the successful writes.
    async fn announce(
        &mut self,
        task: &Task,
        seen: &StateBefore,
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
        if error.is_conflict() && *failures <= CONFLICTS_MAX {
            self.enqueue(task.clone());
            return;
        }
        let delay = RETRY_DELAY.saturating_mul(1 << (*failures - 1).min(20)).min(RETRY_DELAY_MAX);
        let delay = jiff::SignedDuration::try_from(delay).unwrap_or_default();
        let retry_at = now.checked_add(delay).unwrap_or(Timestamp::MAX);
        self.timers.entry(retry_at).or_default().insert(task.clone());
    }
}

/// The state that a controller saw before it wrote.
struct StateBefore {
    subject: Seen,
    /// The objects that each action changes.
    before: Vec<Option<Seen>>,
}

impl StateBefore {
    /// `None` if the subject is gone or there is nothing to write.
    fn of(subject: &Key, outcome: &Outcome, world: &dyn World) -> Option<Self> {
        if outcome.actions.is_empty() {
            return None;
        }
        let before = outcome.actions.iter().map(|action| world.get(action.key()?));
        Some(Self { subject: world.get(subject)?, before: before.collect() })
    }
}

/// The tables that the members of a group watch together.
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

/// Splits an object that was deleted and recreated between two snapshots into two changes.
fn split_replacement(change: Change) -> Vec<Change> {
    match (&change.old, &change.new) {
        (Some(old), Some(new)) if !old.0.packed().has_uid_of(new.0.packed()) => {
            vec![Change { new: None, ..change.clone() }, Change { old: None, ..change }]
        }
        _ => vec![change],
    }
}

/// Executes the writes in order; stops at the first failure that is not tolerated.
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

/// Returns the name of the written object; empty if nothing had to be done.
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

/// Tolerates failures that mean that the goal is already reached or obsolete.
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
