//! Messages to the reactor: finished cycles, and notices from the parts below it.

use tokio::sync::mpsc;

use crate::context::notice::{Notice, Notices};
use crate::cycle::Done;

/// One message.
pub(crate) enum Message {
    /// A cycle has finished with an object.
    Done(Done),
    /// Another part of the engine reports something.
    Notice(Notice),
}

/// Both ends of the reactor's channel.
pub(crate) struct Mailbox {
    pub(super) sender: mpsc::UnboundedSender<Message>,
    pub(super) messages: mpsc::UnboundedReceiver<Message>,
}

impl Mailbox {
    /// Creates a mailbox, and the sender for parts that do not know the reactor.
    pub(crate) fn new() -> (Self, Notices) {
        let (sender, messages) = mpsc::unbounded_channel();
        let notify = sender.clone();
        let notices = Notices::new(move |notice| {
            // At the very end the reactor may be gone; then the notice does not matter.
            let _ = notify.send(Message::Notice(notice));
        });
        (Self { sender, messages }, notices)
    }
}
