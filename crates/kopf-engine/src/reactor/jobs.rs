//! The input of a cycle: the newest state of an object with its events and its memory.

use std::sync::Arc;

use kopf_core::occasion::EventKind;
use kopf_core::queue::Ticket;
use kopf_core::write::Version;
use kopf_model::Object;

use super::standby::Sharing;
use crate::context::shared::Served;
use crate::cycle::{Job, Mode};
use crate::key::Key;
use crate::store::Record;
use crate::store::memory::Memory;
use crate::watching::{ChildWatches, Watches};

/// Takes everything known about an object; returns the ticket if there is nothing to do.
///
/// While handlers are barred, if the object is not ours, or while the children that they read are
/// not listed, only the indexes are filled.
pub(super) fn prepare(
    watches: &mut Watches,
    children: &mut ChildWatches,
    sharing: &Sharing,
    is_barred: bool,
    ticket: Ticket<Key>,
) -> Result<Job, Ticket<Key>> {
    let key = ticket.key;
    let Some(watch) = watches.get_mut(key.watch) else { return Err(ticket) };
    let served = Arc::clone(&watch.served);
    let Some(record) = watch.store.get(key.uid) else { return Err(ticket) };
    let waiting = record.inbox.as_ref().and_then(|inbox| inbox.newest());
    let is_ours = waiting.or(record.body.as_ref()).is_none_or(|it| sharing.has(it));
    if !is_ours && served.handlers.indexing.is_empty() {
        // It stays where it is, for the replica that takes over; unless it is gone.
        if record.inbox.as_ref().is_some_and(|inbox| inbox.gone) {
            watch.store.remove(key.uid);
        }
        return Err(ticket);
    }
    let mut mode = if is_barred || !is_ours { Mode::IndexOnly } else { Mode::Full };
    if mode == Mode::Full && children.are_awaited(&served) {
        children.hold(key);
        if served.handlers.indexing.is_empty() {
            return Err(ticket);
        }
        mode = Mode::IndexOnly;
    }
    let kept = record.body.clone();
    if mode == Mode::IndexOnly {
        let waiting = record.inbox.as_ref().and_then(|inbox| inbox.object.clone());
        let Some(object) = waiting.or(kept) else { return Err(ticket) };
        let gone = record.inbox.as_ref().is_some_and(|inbox| inbox.gone);
        record.flags.busy = true;
        return Ok(job(ticket, served, object, gone, Vec::new(), record, mode));
    }
    let inbox = record.inbox.take().unwrap_or_default();
    let (object, mode) = match (inbox.object, inbox.events.last()) {
        (Some(object), _) => (object, mode),
        (None, Some((_, object))) => {
            let known = kept.unwrap_or_else(|| object.clone());
            (Version::newest(object.clone(), known), Mode::EventsOnly)
        }
        (None, None) => match kept {
            // Kept for changes of event handlers that could not be written yet.
            Some(object) if Version::of(&object) < record.version => (object, Mode::EventsOnly),
            Some(object) => (object, mode),
            None => return Err(ticket),
        },
    };
    if record.body.is_none() && (served.is_shared || served.is_saved) {
        // The hand-over and the snapshot must know which objects are busy.
        record.body = Some(object.at_rest());
    }
    record.flags.busy = true;
    record.flags.leaving = inbox.is_guess;
    Ok(job(ticket, served, object, inbox.gone, inbox.events, record, mode))
}

fn job(
    ticket: Ticket<Key>,
    served: Arc<Served>,
    object: Object,
    gone: bool,
    events: Vec<(Option<EventKind>, Object)>,
    record: &mut Record,
    mode: Mode,
) -> Job {
    Job {
        ticket,
        served,
        object,
        gone,
        events,
        memory: record.memory.take().unwrap_or_else(|| Box::new(Memory::default())),
        flags: record.flags,
        mode,
        version: record.version,
        settled: record.settled,
    }
}
