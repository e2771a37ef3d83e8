//! Everything that may go wrong between an engine and a server, randomly by a seed.
//!
//! Responses are late or lost after the server has acted, so that the engine reads outdated data;
//! events are late, duplicated, reordered or stop; and the engine is killed.

use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, StreamExt as _};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};

use crate::proxy::{AnyBody, Fault};

/// The random generator of faults.
pub(crate) struct Chaos {
    random: fastrand::Rng,
    /// The remaining number of kills.
    kills_left: usize,
}

/// What happens to one request.
#[derive(Default)]
pub(crate) struct RequestFault {
    pub(crate) fault: Option<Fault>,
    pub(crate) delay_before: Duration,
    pub(crate) delay_after: Duration,
    pub(crate) is_deadly: bool,
    pub(crate) is_taken: bool,
    /// The random generator for the events of a watch.
    pub(crate) stream: Option<fastrand::Rng>,
}

impl Chaos {
    pub(crate) fn new(seed: u64, kills_left: usize) -> Self {
        Self { random: fastrand::Rng::with_seed(seed), kills_left }
    }

    pub(crate) fn next_fault(&mut self, is_watch: bool) -> RequestFault {
        let random = &mut self.random;
        let mut happens = |percent: u8| random.u8(0..100) < percent;
        let (is_late, is_slow) = (happens(15), happens(15));
        let fault = match () {
            () if happens(5) => Some(Fault::Break),
            () if happens(5) => Some(Fault::BreakAfter),
            () if happens(3) => Some(Fault::Answer(503, None)),
            () if happens(3) => Some(Fault::AnswerAfter(500)),
            () if happens(2) => Some(Fault::Answer(429, Some(1))),
            () if is_watch && happens(10) => Some(Fault::Answer(410, None)),
            () => None,
        };
        let (is_deadly, is_taken) = (happens(5) && self.kills_left > 0, happens(50));
        if is_deadly {
            self.kills_left -= 1;
        }
        let mut moment = |is_needed: bool| {
            let millis = if is_needed { self.random.u64(0..2000) } else { 0 };
            Duration::from_millis(millis)
        };
        let (delay_before, delay_after) = (moment(is_late), moment(is_slow));
        let stream = is_watch.then(|| fastrand::Rng::with_seed(self.random.u64(..)));
        RequestFault { fault, delay_before, delay_after, is_deadly, is_taken, stream }
    }
}

struct Lines {
    body: AnyBody,
    buffer: Vec<u8>,
    /// Lines to send next, before anything from the server.
    ready: Vec<Bytes>,
    random: fastrand::Rng,
    is_silent: bool,
}

/// A watch whose events are late, duplicated or swapped, or that ends.
pub(crate) fn distort(body: AnyBody, random: fastrand::Rng) -> AnyBody {
    let lines = Lines::of(body, random);
    let stream = stream::unfold(lines, |mut lines| async move {
        let next = lines.next().await?;
        Some((next.map(Frame::data), lines))
    });
    StreamBody::new(stream.boxed()).boxed_unsync()
}

/// A watch in which every event with an immediate successor is sent after it.
pub(crate) fn swap(body: AnyBody) -> AnyBody {
    let lines = Lines::of(body, fastrand::Rng::with_seed(0));
    let stream = stream::unfold(lines, |mut lines| async move {
        if let Some(line) = lines.ready.pop() {
            return Some((Ok(Frame::data(line)), lines));
        }
        let line = match lines.line().await? {
            Ok(line) => line,
            Err(error) => return Some((Err(error), lines)),
        };
        let next = tokio::time::timeout(Duration::from_millis(200), lines.line()).await;
        let Ok(Some(Ok(next))) = next else { return Some((Ok(Frame::data(line)), lines)) };
        lines.ready.push(line);
        Some((Ok(Frame::data(next)), lines))
    });
    StreamBody::new(stream.boxed()).boxed_unsync()
}

/// A watch with delayed events.
pub(crate) fn delay(body: AnyBody, time: Duration) -> AnyBody {
    let lines = Lines::of(body, fastrand::Rng::with_seed(0));
    let stream = stream::unfold(lines, move |mut lines| async move {
        let line = lines.line().await?;
        tokio::time::sleep(time).await;
        Some((line.map(Frame::data), lines))
    });
    StreamBody::new(stream.boxed()).boxed_unsync()
}

/// A watch that sends only some of its events.
pub(crate) fn thin(body: AnyBody, is_told: impl FnMut(&str) -> bool + Send + 'static) -> AnyBody {
    let lines = Lines::of(body, fastrand::Rng::with_seed(0));
    let stream = stream::unfold((lines, is_told), |(mut lines, mut is_told)| async move {
        loop {
            match lines.line().await? {
                Ok(line) if !is_told(&String::from_utf8_lossy(&line)) => {}
                other => return Some((other.map(Frame::data), (lines, is_told))),
            }
        }
    });
    StreamBody::new(stream.boxed()).boxed_unsync()
}

impl Lines {
    fn of(body: AnyBody, random: fastrand::Rng) -> Self {
        Self { body, buffer: Vec::new(), ready: Vec::new(), random, is_silent: false }
    }

    async fn next(&mut self) -> Option<Result<Bytes, std::io::Error>> {
        if let Some(line) = self.ready.pop() {
            return Some(Ok(line));
        }
        let line = match self.line().await? {
            Ok(line) if !self.is_silent => line,
            Ok(_) => std::future::pending().await,
            Err(error) => return Some(Err(error)),
        };
        match self.random.u8(0..100) {
            0..3 => {
                return Some(Err(std::io::Error::other("the watch is broken by the test")));
            }
            3..5 => self.is_silent = true,
            5..15 => self.ready.push(line.clone()),
            15..20 => {
                // The next one overtakes it, if there is one soon.
                let wait = Duration::from_millis(50);
                if let Ok(Some(Ok(other))) = tokio::time::timeout(wait, self.line()).await {
                    self.ready.push(line);
                    return Some(Ok(other));
                }
            }
            20..35 => {
                tokio::time::sleep(Duration::from_millis(self.random.u64(0..3000))).await;
            }
            _ => {}
        }
        if self.is_silent {
            return std::future::pending().await;
        }
        Some(Ok(line))
    }

    async fn line(&mut self) -> Option<Result<Bytes, std::io::Error>> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Some(Ok(line.into()));
            }
            match self.body.frame().await? {
                Ok(frame) => {
                    if let Ok(data) = frame.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
