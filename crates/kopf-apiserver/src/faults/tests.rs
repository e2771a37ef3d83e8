//! Tests for faults.

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;

use super::{Fault, Faults, Trouble, disturb};
use crate::clock::{Clock, SystemClock};
use crate::matcher::RequestMatcher;
use crate::request::{RequestInfo, Verb};

fn info(verb: Verb) -> RequestInfo {
    RequestInfo {
        verb,
        group: String::new(),
        version: "v1".into(),
        resource: "pods".into(),
        subresource: String::new(),
        namespace: "ns".into(),
        name: String::new(),
    }
}

#[test]
fn a_rule_applies_to_the_nth_request_a_number_of_times() {
    let faults = Faults::default();
    let lists = RequestMatcher::any().verb(Verb::List).resource("pods");
    faults.add(Fault::new(lists, Trouble::Expired).after(1).times(2));
    let struck: Vec<bool> =
        (0..5).map(|_| !faults.strike(&info(Verb::List), "me").is_empty()).collect();
    assert_eq!(struck, [false, true, true, false, false]);
    assert!(faults.strike(&info(Verb::Get), "me").is_empty());
}

async fn disturbed(trouble: Trouble) -> String {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let frames = [Bytes::from_static(b"1\n2\n"), Bytes::from_static(b"3\n")];
    let stream = disturb(futures::stream::iter(frames), &[trouble], &clock);
    let lines: Vec<Bytes> = stream.take(8).collect().await;
    String::from_utf8(lines.concat()).unwrap().replace('\n', " ")
}

#[tokio::test]
async fn troubles_disturb_single_events() {
    assert_eq!(disturbed(Trouble::DropWatch(2)).await, "1 2 ");
    assert_eq!(disturbed(Trouble::DuplicateEvents).await, "1 1 2 2 3 3 ");
    assert_eq!(disturbed(Trouble::ReorderEvents).await, "2 1 3 ");
    assert!(disturbed(Trouble::Expired).await.contains("\"reason\":\"Expired\""));
}
