use futures::FutureExt;

use super::*;

#[tokio::test]
async fn urgent_writes_overtake_normal_ones() {
    let limiter = Limiter::new(1);
    let first = limiter.acquire(Urgency::Normal).await;
    let mut normal = Box::pin(limiter.acquire(Urgency::Normal));
    let mut urgent = Box::pin(limiter.acquire(Urgency::Urgent));
    assert!((&mut normal).now_or_never().is_none());
    assert!((&mut urgent).now_or_never().is_none());
    drop(first);
    assert!((&mut normal).now_or_never().is_none());
    let second = (&mut urgent).now_or_never().expect("the urgent write is next");
    drop(second);
    assert!((&mut normal).now_or_never().is_some());
}

#[tokio::test]
async fn a_waiter_that_gives_up_does_not_lose_the_permit() {
    let limiter = Limiter::new(1);
    let first = limiter.acquire(Urgency::Normal).await;
    let mut abandoned = Box::pin(limiter.acquire(Urgency::Normal));
    assert!((&mut abandoned).now_or_never().is_none());
    drop(abandoned);
    drop(first);
    assert!(limiter.acquire(Urgency::Normal).now_or_never().is_some());
    assert_eq!(limiter.load().0, 0);
}

#[tokio::test(start_paused = true)]
async fn an_overloaded_server_gets_the_requested_pause() {
    let limiter = Limiter::new(8);
    limiter.overloaded(Some(Duration::from_secs(5)));
    let before = Instant::now();
    drop(limiter.acquire(Urgency::Urgent).await);
    assert_eq!(before.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn complaints_halve_the_allowance_and_successes_restore_it() {
    let limiter = Limiter::new(64);
    limiter.overloaded(None);
    assert_eq!(limiter.load().1, 8);
    for _ in 0..10_000 {
        limiter.acquire(Urgency::Normal).await.succeeded();
    }
    assert_eq!(limiter.load().1, 64);
}

/// Starts all writes at once, each with this response time; returns the total time.
async fn writes(limiter: &Arc<Limiter>, count: usize, answer: Duration) -> Duration {
    let begun = Instant::now();
    let writes = (0..count).map(|_| async {
        let permit = limiter.acquire(Urgency::Normal).await;
        tokio::time::sleep(answer).await;
        permit.succeeded();
    });
    futures::future::join_all(writes).await;
    begun.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_server_that_waits_for_its_disks_gets_more_writes_at_once() {
    let limiter = Limiter::new(128);
    let took = writes(&limiter, 100, Duration::from_millis(20)).await;
    assert_eq!(limiter.load(), (0, 128));
    // The last ones start after three ticks.
    assert!(took < Duration::from_millis(30), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn responses_of_constant_duration_mean_an_idle_server() {
    let limiter = Limiter::new(128);
    // Responses always arrive before the silence is detected.
    writes(&limiter, 500, Duration::from_millis(2)).await;
    assert_eq!(limiter.load().1, 128);
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_gets_no_more_than_it_can_do() {
    let limiter = Limiter::new(128);
    let busy = tokio::sync::Mutex::new(());
    let writes = (0..100).map(|_| async {
        let permit = limiter.acquire(Urgency::Normal).await;
        let turn = busy.lock().await;
        tokio::time::sleep(Duration::from_millis(1)).await;
        drop(turn);
        permit.succeeded();
    });
    futures::future::join_all(writes).await;
    let allowed = limiter.load().1;
    assert!((16..=24).contains(&allowed), "{allowed}");
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_after_an_overload_gets_no_more_writes() {
    let limiter = Limiter::new(128);
    limiter.overloaded(None);
    writes(&limiter, 20, Duration::from_millis(500)).await;
    assert!(limiter.load().1 < 16, "{:?}", limiter.load());
}

#[tokio::test(start_paused = true)]
async fn waiters_are_notified_of_a_larger_allowance() {
    let limiter = Limiter::new(128);
    let slow = writes(&limiter, 80, Duration::from_secs(1));
    let check = async {
        limiter.widened().await;
        limiter.load()
    };
    let (_, (in_flight, allowed)) = tokio::join!(slow, check);
    assert_eq!((in_flight, allowed), (64, 64));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_only_fails_is_not_silent() {
    let limiter = Limiter::new(128);
    let writes = (0..200).map(|_| async {
        let permit = limiter.acquire(Urgency::Normal).await;
        tokio::time::sleep(TICK).await;
        drop(permit);
    });
    futures::future::join_all(writes).await;
    assert_eq!(limiter.load().1, 16);
}
