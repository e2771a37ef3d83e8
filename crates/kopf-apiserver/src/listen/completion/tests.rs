//! What was started ends, whether or not someone waits for it.

use futures::FutureExt;
use tokio::sync::oneshot;

use super::Completion;

#[tokio::test]
async fn a_future_that_is_dropped_early_is_completed() {
    let (begin, begun) = oneshot::channel::<()>();
    let (end, ended) = oneshot::channel();
    let mut completion = Completion::new(Box::pin(async move {
        begun.await.expect("the test lets it begin");
        end.send("done").expect("the test waits for the end");
    }));
    assert!((&mut completion).now_or_never().is_none(), "it waits");
    drop(completion);
    begin.send(()).expect("it still waits");
    assert_eq!(ended.await, Ok("done"));
}

#[tokio::test]
async fn a_future_that_is_awaited_needs_no_task() {
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let completion = Completion::new(Box::pin(async { 7 }));
    assert_eq!(completion.await, Ok(7));
    assert_eq!(tasks(), before);
}

#[tokio::test]
async fn a_panic_becomes_an_error() {
    let completion = Completion::<()>::new(Box::pin(async { panic!("no such table") }));
    assert_eq!(completion.await, Err("the request panicked: no such table".to_owned()));
}

#[test]
fn without_a_runtime_the_rest_is_dropped() {
    drop(Completion::new(Box::pin(std::future::pending::<()>())));
}
