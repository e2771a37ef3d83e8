//! Output to a reader that stops reading for a while.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use super::Output;

/// Longer than any test here takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// A pipe that accepts a write only when the test allows it.
struct Pipe {
    begun: Sender<()>,
    go_on: Receiver<()>,
    written: Sender<String>,
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.begun.send(()).expect("the test waits for it");
        self.go_on.recv().map_err(io::Error::other)?;
        self.written.send(String::from_utf8_lossy(bytes).into_owned()).expect("a test");
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn unread_lines_are_dropped_and_counted_in_order() {
    let (begun, has_begun) = channel();
    let (tell, go_on) = channel();
    let (written, read) = channel();
    let notice = |count| format!("{count} dropped\n");
    let mut output =
        Output::start(Pipe { begun, go_on, written }, 100, false, notice).expect("a thread");
    output.write_all(b"first\n").expect("never fails");
    has_begun.recv().expect("the pipe is blocked now");
    for number in 10..40 {
        output.write_all(format!("line {number}\n").as_bytes()).expect("never blocks");
    }
    assert!(!output.wait(Duration::ZERO), "the wait for a blocked reader is bounded");
    for _ in 0..3 {
        tell.send(()).expect("the pipe goes on");
    }
    assert!(output.wait(PATIENCE));
    output.write_all(b"last\n").expect("never fails");
    tell.send(()).expect("the pipe goes on");
    assert!(output.wait(PATIENCE));
    let text: String = read.try_iter().collect();
    let kept: String = (10..21).map(|number| format!("line {number}\n")).collect();
    assert_eq!(text, format!("first\n{kept}19 dropped\nlast\n"));
}

#[test]
fn a_line_larger_than_the_queue_is_written_when_the_queue_is_empty() {
    let (_reader, writer) = io::pipe().expect("a pipe");
    let mut output = Output::start(writer, 10, true, |_| String::new()).expect("a thread");
    output.write_all(&[b'x'; 1000]).expect("never fails");
    assert!(output.wait(PATIENCE));
}
