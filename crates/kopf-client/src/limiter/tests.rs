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
async fn an_overloaded_server_is_left_alone_for_as_long_as_it_asked() {
    let limiter = Limiter::new(8);
    limiter.overloaded(Some(Duration::from_secs(5)));
    let before = Instant::now();
    drop(limiter.acquire(Urgency::Urgent).await);
    assert_eq!(before.elapsed().as_secs(), 5);
}

#[test]
fn complaints_halve_the_allowance_and_successes_restore_it() {
    let limiter = Limiter::new(64);
    limiter.overloaded(None);
    assert_eq!(limiter.load().1, 8);
    for _ in 0..10_000 {
        limiter.succeeded();
    }
    assert_eq!(limiter.load().1, 64);
}
