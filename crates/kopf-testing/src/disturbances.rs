//! Decides from a seed what happens to each request of a tortured operator, and records it.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode, Uri};
use parking_lot::Mutex;

/// The maximum number of disturbances per round, so that every round ends.
const DISTURBANCES_MAX: usize = 16;
/// The maximum number of crashes per round.
const CRASHES_MAX: usize = 3;

/// The properties of a request that disturbances depend on.
pub(crate) struct Asked {
    method: Method,
    target: String,
}

/// What happens to a request.
pub(crate) enum Act {
    /// It is passed on unchanged.
    Pass,
    /// The operator is killed before or after the server has processed the request.
    Crash { is_taken: bool },
    /// The response is a failure, although the server may have processed the request.
    Refuse { code: StatusCode, is_taken: bool },
    /// There is no response, although the server may have processed the request.
    Break { is_taken: bool },
    /// The response is delayed.
    Late(Duration),
    /// The response is an outdated one.
    Stale(Bytes),
    /// The watch is disturbed.
    Distort(Distortion),
}

/// What happens to the events of one watch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Distortion {
    /// It ends silently after some events.
    CutAfter(usize),
    /// After some events, all others are lost until the connection breaks a while later.
    LoseAfter(usize, Duration),
    /// Every event is sent twice.
    Double,
    /// Every event is delayed.
    Delay(Duration),
    /// The version is too old: the whole collection must be listed again.
    Expire,
}

/// The plan of one round, and what was done so far.
pub(crate) struct Disturbances(Mutex<Inner>);

struct Inner {
    random: fastrand::Rng,
    /// The number of requests of all lives.
    requests: usize,
    /// The requests at which the operator is killed, and whether the server processes them.
    crashes: BTreeMap<usize, bool>,
    disturbances: usize,
    /// Whether the current life has started to watch.
    is_watching: bool,
    /// Earlier responses to lists of the current life. A server never responds to a new life with
    /// a state from before its start, because lists without a version are consistent reads.
    lists: HashMap<String, Bytes>,
    record: Vec<String>,
}

impl Disturbances {
    /// Only counts requests.
    pub(crate) fn none() -> Self {
        Self::with(0, BTreeMap::new(), 0)
    }

    /// A round: even rounds kill at evenly spaced requests, odd ones anywhere among disturbances.
    pub(crate) fn planned(seed: u64, round: usize, rounds: usize, requests: usize) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut crashes = BTreeMap::new();
        if requests > 0 && round.is_multiple_of(2) {
            let steps = rounds.div_ceil(2);
            crashes.insert(round / 2 * requests / steps, round.is_multiple_of(4));
        } else if requests > 0 {
            for _ in 0..random.usize(1..=CRASHES_MAX) {
                crashes.insert(random.usize(0..requests * 3 / 2 + 1), random.bool());
            }
        }
        let disturbances = if round.is_multiple_of(2) { 0 } else { DISTURBANCES_MAX };
        Self::with(seed, crashes, disturbances)
    }

    /// A single kill, at one of evenly spaced requests.
    pub(crate) fn killing(round: usize, rounds: usize, requests: usize) -> Self {
        let number = (2 * round + 1) * requests / (2 * rounds.max(1));
        Self::with(0, BTreeMap::from([(number, round.is_multiple_of(2))]), 0)
    }

    fn with(seed: u64, crashes: BTreeMap<usize, bool>, disturbances: usize) -> Self {
        Self(Mutex::new(Inner {
            random: fastrand::Rng::with_seed(seed),
            requests: 0,
            crashes,
            disturbances,
            is_watching: false,
            lists: HashMap::new(),
            record: Vec::new(),
        }))
    }

    /// Stops all disturbances.
    pub(crate) fn end(&self) {
        let mut inner = self.0.lock();
        inner.disturbances = 0;
        inner.crashes.clear();
    }

    /// The number of requests.
    pub(crate) fn requests(&self) -> usize {
        self.0.lock().requests
    }

    /// Whether the operator has started to watch since it was last killed.
    pub(crate) fn is_watching(&self) -> bool {
        self.0.lock().is_watching
    }

    /// What was done, one line each.
    pub(crate) fn record(&self) -> String {
        let inner = self.0.lock();
        inner.record.iter().fold(String::new(), |mut text, action| {
            let _infallible = writeln!(text, "  {action}");
            text
        })
    }

    /// Remembers the response to a list.
    pub(crate) fn remember(&self, asked: &Asked, answer: &Bytes) {
        self.0.lock().lists.insert(asked.target.clone(), answer.clone());
    }

    /// Decides about a request.
    pub(crate) fn act(&self, asked: &Asked) -> Act {
        let mut inner = self.0.lock();
        let number = inner.requests;
        inner.requests += 1;
        inner.is_watching |= asked.is_watch();
        let act = match inner.crashes.remove(&number) {
            Some(is_taken) => {
                inner.is_watching = false;
                inner.lists.clear();
                Act::Crash { is_taken }
            }
            None if inner.disturbances == 0 => return Act::Pass,
            None => inner.disturb(asked),
        };
        let Some(action) = describe(&act) else { return act };
        inner.disturbances = inner.disturbances.saturating_sub(1);
        let Asked { method, target } = asked;
        inner.record.push(format!("request {number}, {method} {target}: {action}"));
        act
    }
}

impl Inner {
    fn disturb(&mut self, asked: &Asked) -> Act {
        let luck = self.random.u32(0..100);
        if asked.is_watch() {
            let count = self.random.usize(0..4);
            let while_ = Duration::from_secs(self.random.u64(1..30));
            return match luck {
                0..15 => Act::Distort(Distortion::CutAfter(count)),
                15..35 => Act::Distort(Distortion::LoseAfter(count, while_)),
                35..50 => Act::Distort(Distortion::Double),
                50..65 => Act::Distort(Distortion::Delay(while_ / 10)),
                65..75 => Act::Distort(Distortion::Expire),
                75..80 => Act::Break { is_taken: false },
                _ => Act::Pass,
            };
        }
        let former = asked.is_list().then(|| self.lists.get(&asked.target).cloned()).flatten();
        if let Some(answer) = former.filter(|_| luck >= 50) {
            return Act::Stale(answer);
        }
        let is_taken = self.random.bool();
        match luck {
            0..8 => {
                let codes = [
                    StatusCode::INTERNAL_SERVER_ERROR,
                    StatusCode::SERVICE_UNAVAILABLE,
                    StatusCode::GATEWAY_TIMEOUT,
                ];
                Act::Refuse { code: codes[self.random.usize(0..codes.len())], is_taken }
            }
            8..12 => Act::Refuse { code: StatusCode::TOO_MANY_REQUESTS, is_taken: false },
            12..18 => Act::Break { is_taken },
            18..26 => Act::Late(Duration::from_millis(self.random.u64(1..5000))),
            _ => Act::Pass,
        }
    }
}

fn describe(act: &Act) -> Option<String> {
    let taken = |is_taken: &bool| if *is_taken { "after" } else { "before" };
    Some(match act {
        Act::Pass => return None,
        Act::Crash { is_taken } => {
            format!("the operator is killed {} the server takes it", taken(is_taken))
        }
        Act::Refuse { code, is_taken } => {
            format!("answered with {} {} the server takes it", code.as_u16(), taken(is_taken))
        }
        Act::Break { is_taken } => {
            format!("the connection breaks {} the server takes it", taken(is_taken))
        }
        Act::Late(latency) => format!("late by {latency:?}"),
        Act::Stale(_) => "answered with a former list".to_owned(),
        Act::Distort(distortion) => format!("{distortion:?}"),
    })
}

impl Asked {
    pub(crate) fn new(method: &Method, target: &Uri) -> Self {
        let target = target.path_and_query().map_or_else(String::new, ToString::to_string);
        Self { method: method.clone(), target }
    }

    fn is_watch(&self) -> bool {
        self.target.contains("watch=true")
    }

    /// Whether it is about a collection, not discovery.
    pub(crate) fn is_list(&self) -> bool {
        let path = self.target.split('?').next().unwrap_or_default().trim_matches('/');
        let parts: Vec<&str> = path.split('/').collect();
        let rest = match parts.as_slice() {
            ["api", _, rest @ ..] | ["apis", _, _, rest @ ..] => rest,
            _ => return false,
        };
        let is_collection = matches!(rest, [_] | ["namespaces", _, _]);
        self.method == Method::GET && !self.is_watch() && is_collection
    }
}
