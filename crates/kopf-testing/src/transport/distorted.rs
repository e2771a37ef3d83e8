//! Watch streams that lose, repeat or delay events.

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, StreamBody};

use crate::disturbances::Distortion;

/// The body of any response.
pub(crate) type AnyBody = UnsyncBoxBody<Bytes, std::io::Error>;

/// The stream with the distortion.
pub(crate) fn distorted(body: AnyBody, distortion: Distortion) -> AnyBody {
    let frames = body.into_data_stream().filter_map(|frame| async { frame.ok() }).boxed();
    let lines = frames.flat_map(|frame| stream::iter(lines(frame))).boxed();
    let lines: BoxStream<'static, Bytes> = match distortion {
        Distortion::CutAfter(count) => lines.take(count).boxed(),
        Distortion::LoseAfter(count, time) => {
            let ending = stream::once(tokio::time::sleep(time)).filter_map(|()| async { None });
            // Both are polled: lost events must be read, so that the server does not notice.
            let lost = lines_after(count);
            let sent = lines.filter_map(lost).map(Some).boxed();
            let end = ending.chain(stream::iter([None])).boxed();
            let both = stream::select(sent, end);
            both.take_while(|line| std::future::ready(line.is_some()))
                .filter_map(std::future::ready)
                .boxed()
        }
        Distortion::Double => lines.flat_map(|line| stream::iter([line.clone(), line])).boxed(),
        Distortion::Delay(delay) => lines
            .then(move |line| async move {
                tokio::time::sleep(delay).await;
                line
            })
            .boxed(),
        Distortion::Expire => stream::iter([Bytes::from_static(EXPIRED)]).boxed(),
    };
    StreamBody::new(lines.map(|line| Ok(Frame::data(line)))).boxed_unsync()
}

const EXPIRED: &[u8] =
    b"{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\",\
    \"status\":\"Failure\",\"code\":410,\"reason\":\"Expired\",\"message\":\"too old\"}}\n";

/// Passes the first lines on, and drops all others.
fn lines_after(count: usize) -> impl FnMut(Bytes) -> std::future::Ready<Option<Bytes>> {
    let mut sent = 0;
    move |line| {
        sent += 1;
        std::future::ready((sent <= count).then_some(line))
    }
}

fn lines(frame: Bytes) -> Vec<Bytes> {
    let mut rest = frame;
    let mut lines = Vec::new();
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        lines.push(rest.split_to(end + 1));
    }
    if !rest.is_empty() {
        lines.push(rest);
    }
    lines
}
