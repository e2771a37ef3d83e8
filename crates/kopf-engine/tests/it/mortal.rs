//! A runtime in which everything can be killed between any two polls of its tasks.
//!
//! Requires nothing from the code that it kills: tokio's current-thread runtime polls its root
//! future after a given number of task polls, here after each one. The root counts, and ends the
//! runtime at the wanted point: all tasks are dropped where they are, and none of them is polled
//! again. A task can be suspended only at an await, so these points are all the awaits at which it
//! was suspended.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// After this many turns of only the marker, nothing is left to be polled.
const IDLE_ROUNDS: usize = 2;

/// How a life has ended.
pub(crate) struct Life<T> {
    /// How many points there were for a kill.
    pub(crate) points: usize,
    /// Its duration on the paused clock.
    pub(crate) lasted: Duration,
    /// Its result; `None` if it was killed.
    pub(crate) outcome: Option<T>,
}

/// Runs tasks until their story ends, or until they are killed.
///
/// The story itself is not a task: it is another participant, and not counted.
pub(crate) fn live<S: Future>(kill_at: Option<usize>, story: S) -> Life<S::Output> {
    let pulse = Arc::new(Pulse::default());
    let unparked = Arc::clone(&pulse);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .event_interval(1)
        .on_thread_unpark(move || wake(&unparked.root))
        .build()
        .expect("a runtime");
    pulse.is_called.store(true, SeqCst);
    runtime.block_on(async {
        let born = Instant::now();
        tokio::spawn(Marker(Arc::clone(&pulse)));
        let story = Box::pin(story);
        let mut root = Root { pulse, story, kill_at, points: 0, idle_rounds: 0 };
        let outcome = (&mut root).await;
        Life { points: root.points, lasted: born.elapsed(), outcome }
    })
}

/// State shared by the root, the marker and the runtime.
#[derive(Default)]
struct Pulse {
    /// Set when the story wants to continue.
    is_called: AtomicBool,
    /// Set when the marker was polled last.
    is_marked: AtomicBool,
    root: Mutex<Option<Waker>>,
    marker: Mutex<Option<Waker>>,
}

/// A task that is queued behind all other ready ones: when it is polled twice without another poll
/// in between, no task is ready.
struct Marker(Arc<Pulse>);

struct Root<S> {
    pulse: Arc<Pulse>,
    story: Pin<Box<S>>,
    kill_at: Option<usize>,
    points: usize,
    idle_rounds: usize,
}

fn wake(sleeper: &Mutex<Option<Waker>>) {
    if let Some(waker) = &*sleeper.lock() {
        waker.wake_by_ref();
    }
}

/// The waker of the story.
impl Wake for Pulse {
    fn wake(self: Arc<Self>) {
        self.is_called.store(true, SeqCst);
        wake(&self.root);
    }
}

impl Future for Marker {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        *self.0.marker.lock() = Some(context.waker().clone());
        self.0.is_marked.store(true, SeqCst);
        Poll::Pending
    }
}

impl<S: Future> Future for Root<S> {
    type Output = Option<S::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let pulse = Arc::clone(&self.pulse);
        *pulse.root.lock() = Some(context.waker().clone());
        let is_rested = self.idle_rounds == IDLE_ROUNDS;
        let is_marked = pulse.is_marked.swap(false, SeqCst);
        if is_marked || is_rested {
            self.idle_rounds = if is_rested { 0 } else { self.idle_rounds + 1 };
        } else {
            self.idle_rounds = 0;
            if self.kill_at == Some(self.points) {
                return Poll::Ready(None);
            }
            self.points += 1;
        }
        if pulse.is_called.swap(false, SeqCst) {
            self.idle_rounds = 0;
            let waker = Waker::from(Arc::clone(&pulse));
            let told = self.story.as_mut().poll(&mut Context::from_waker(&waker));
            if let Poll::Ready(outcome) = told {
                return Poll::Ready(Some(outcome));
            }
        }
        if self.idle_rounds < IDLE_ROUNDS {
            if is_marked || is_rested {
                wake(&pulse.marker);
            }
            context.waker().wake_by_ref();
        }
        // Otherwise the runtime sleeps and the clock advances, which would not happen with a root
        // that is always awake.
        Poll::Pending
    }
}

#[test]
fn no_poll_of_a_task_is_without_a_point_at_its_end() {
    let polls_until = |kill_at| {
        let polls = Arc::new(Mutex::new(0));
        let life = live(kill_at, async {
            let tasks = (1_u64..=3).map(|number| {
                let polls = Arc::clone(&polls);
                tokio::spawn(async move {
                    for _ in 0..5 {
                        *polls.lock() += 1;
                        tokio::task::yield_now().await;
                        *polls.lock() += 1;
                        tokio::time::sleep(Duration::from_secs(number)).await;
                    }
                    *polls.lock() += 1;
                })
            });
            futures::future::join_all(tasks.collect::<Vec<_>>()).await;
        });
        let polls = *polls.lock();
        (polls, life)
    };
    let (all, life) = polls_until(None);
    assert_eq!(all, 3 * 11);
    assert_eq!(life.lasted.as_secs(), 15);
    let reached: std::collections::BTreeSet<usize> =
        (0..life.points).map(|point| polls_until(Some(point)).0).collect();
    assert_eq!(reached, (0..=all).collect(), "polls at which nobody can be killed");
}
