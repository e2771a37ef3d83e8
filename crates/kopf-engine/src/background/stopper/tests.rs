use super::*;

#[tokio::test(start_paused = true)]
async fn waiting_ends_with_the_time_or_with_the_flag() {
    let stopper = Stopper::default();
    assert!(!stopper.sleep(Duration::from_secs(5)).await);
    let setter = stopper.clone();
    let waiting = tokio::spawn(async move { stopper.sleep(Duration::from_secs(3600)).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    setter.set(StopReason::RESOURCE_DELETED);
    assert!(waiting.await.expect("the task has ended"));
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_at_once_if_the_flag_is_set() {
    let stopper = Stopper::default();
    stopper.set(StopReason::OPERATOR_EXITING);
    stopper.set(StopReason::DAEMON_SIGNALLED);
    stopper.wait(None).await;
    let reason = stopper.reason().expect("there are reasons");
    assert!(reason.contains(StopReason::OPERATOR_EXITING.and(StopReason::DAEMON_SIGNALLED)));
}

#[test]
fn endless_times_never_end() {
    let stopper = Stopper::default();
    let waiting = std::thread::spawn({
        let stopper = stopper.clone();
        move || stopper.wait_blocking(Some(Duration::MAX))
    });
    stopper.set(StopReason::OPERATOR_PAUSING);
    waiting.join().expect("the thread ends");
}

#[test]
fn blocking_code_is_woken_too() {
    let stopper = Stopper::default();
    let waiting = std::thread::spawn({
        let stopper = stopper.clone();
        move || stopper.wait_blocking(None)
    });
    stopper.set(StopReason::OPERATOR_PAUSING);
    waiting.join().expect("the thread ends");
    stopper.wait_blocking(Some(Duration::from_secs(60)));
}

#[tokio::test]
async fn one_reason_is_waited_for_among_others() {
    let stopper = Stopper::default();
    stopper.set(StopReason::RESOURCE_DELETED);
    let mut waiting = stopper.wait_for(StopReason::DAEMON_CANCELLED);
    let early = tokio::time::timeout(Duration::from_millis(10), &mut waiting).await;
    assert!(early.is_err());
    stopper.set(StopReason::DAEMON_CANCELLED);
    waiting.await;
    stopper.wait_for(StopReason::RESOURCE_DELETED).await;
}
