//! Applies faults to a stream of watch lines.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};

use super::Trouble;
use crate::StatusError;
use crate::clock::Clock;
use crate::store::event_line;

/// How long a swapped event waits for the event that should precede it.
const SWAP_PATIENCE: Duration = Duration::from_millis(50);

/// The stream with every fault applied, in the order of the rules.
pub(crate) fn disturb(
    stream: impl Stream<Item = Bytes> + Send + 'static,
    troubles: &[Trouble],
    clock: &Arc<dyn Clock>,
) -> BoxStream<'static, Bytes> {
    let mut stream: BoxStream<'static, Bytes> =
        stream.flat_map(|frame| futures::stream::iter(lines(&frame))).boxed();
    for trouble in troubles {
        stream = match trouble {
            Trouble::Status(_) | Trouble::Latency(_) => stream,
            Trouble::Expired => futures::stream::iter([expired_line()]).boxed(),
            Trouble::DropWatch(count) => stream.take(*count).boxed(),
            Trouble::FreezeWatch(count) => {
                stream.take(*count).chain(futures::stream::pending()).boxed()
            }
            Trouble::DuplicateEvents => {
                stream.flat_map(|line| futures::stream::iter([line.clone(), line])).boxed()
            }
            Trouble::DelayEvents(delay) => {
                let (delay, clock) = (*delay, Arc::clone(clock));
                stream
                    .then(move |line| {
                        let sleep = clock.sleep(delay);
                        async move {
                            sleep.await;
                            line
                        }
                    })
                    .boxed()
            }
            Trouble::ReorderEvents => swapped(stream, Arc::clone(clock)).boxed(),
        };
    }
    stream
}

fn lines(frame: &Bytes) -> Vec<Bytes> {
    let mut lines = Vec::new();
    let mut rest = frame.clone();
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        lines.push(rest.split_to(end + 1));
    }
    if !rest.is_empty() {
        lines.push(rest);
    }
    lines
}

fn expired_line() -> Bytes {
    let status = StatusError::expired("too old resource version").to_value().to_string();
    event_line("ERROR", status.as_bytes())
}

/// Swaps adjacent events; a lone event is sent after a short wait.
fn swapped(
    stream: BoxStream<'static, Bytes>,
    clock: Arc<dyn Clock>,
) -> impl Stream<Item = Bytes> + Send {
    let state = (stream, VecDeque::new(), clock);
    futures::stream::unfold(state, |(mut stream, mut ready, clock)| async move {
        loop {
            if let Some(line) = ready.pop_front() {
                return Some((line, (stream, ready, clock)));
            }
            let first = stream.next().await?;
            let patience = clock.sleep(SWAP_PATIENCE);
            tokio::select! {
                biased;
                second = stream.next() => ready.extend(second),
                () = patience => {}
            }
            ready.push_back(first);
        }
    })
}
