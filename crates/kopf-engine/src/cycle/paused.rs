//! Objects that users pause with an annotation: nothing is done about them until it is removed.

use super::Cycle;

/// While an object has this annotation with the value `true`, only its event and index handlers are
/// called, and nothing is written.
pub const PAUSED_ANNOTATION: &str = "kopf.dev/paused";

/// Whether users have paused the object.
pub(super) fn is_paused(cycle: &Cycle) -> bool {
    !cycle.gone && cycle.object.note(PAUSED_ANNOTATION).as_deref() == Some("true")
}

/// Stops the daemons and timers of the object, and does nothing else.
pub(super) async fn stop_background(cycle: &mut Cycle) {
    let wait = cycle.memory.background.pause(&cycle.shared).await;
    cycle.rest.wake_at = wait.map(|wait| cycle.after(wait));
    // Events are delivered only once, so the object would not be handled again.
    let patch = std::mem::take(&mut *cycle.patch.lock());
    cycle.memory.unsent.absorb(patch);
}
