use std::time::Duration;

use super::*;

const TERM: Duration = Duration::from_secs(10);

fn open(tenure: &Tenure) {
    tenure.open(3, Instant::now() + TERM, SystemTime::now() + TERM, Share::All);
}

#[tokio::test(start_paused = true)]
async fn without_replicas_everything_is_always_allowed() {
    let tenure = Tenure::new();
    tokio::time::advance(Duration::from_secs(1_000_000)).await;
    assert!(tenure.is_open());
    assert_eq!(Leadership(tenure).term(), None);
}

#[tokio::test(start_paused = true)]
async fn a_term_ends_by_the_clock_even_if_it_is_not_closed() {
    let tenure = Tenure::new();
    open(&tenure);
    assert_eq!(Leadership(Arc::clone(&tenure)).term(), Some(3));
    tokio::time::advance(TERM).await;
    assert!(!tenure.is_open());
    assert_eq!(tenure.share(), Share::Nothing);
    assert_eq!(Leadership(tenure).term(), None);
}

#[tokio::test(start_paused = true)]
async fn waiters_are_notified_of_the_end_of_a_term_that_was_not_extended() {
    let tenure = Tenure::new();
    let (sender, mut messages) = tokio::sync::mpsc::unbounded_channel();
    tenure.report_to(move |share| sender.send(share).expect("the test listens"));
    tenure.close();
    let _watch =
        tokio_util::task::AbortOnDropHandle::new(tokio::spawn(Arc::clone(&tenure).watch()));
    open(&tenure);
    tokio::time::advance(Duration::from_secs(6)).await;
    open(&tenure);
    let begun = Instant::now();
    tenure.closed().await;
    assert_eq!(begun.elapsed().as_secs(), TERM.as_secs());
    let mut shares = Vec::new();
    while let Ok(share) = messages.try_recv() {
        shares.push(share);
    }
    assert_eq!(shares, [Share::Nothing, Share::All, Share::Nothing]);
}

#[tokio::test(start_paused = true)]
async fn a_term_ends_by_the_wall_clock_when_the_other_one_stood_still() {
    let tenure = Tenure::new();
    let past = SystemTime::now() - Duration::from_secs(1);
    tenure.open(3, Instant::now() + TERM, past, Share::All);
    assert!(!tenure.is_open());
}
