//! Tests of signals. They start this test program again, as the process that gets the signals.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::receive;

const STUCK: &str = "KOPF_TEST_STUCK";
const UNREAD: &str = "KOPF_TEST_UNREAD";

#[test]
fn two_signals_end_a_stuck_program() {
    if std::env::var_os(STUCK).is_some() {
        be_stuck();
    }
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["two_signals_end_a_stuck_program", "--nocapture"])
        .env(STUCK, "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    // The test framework prints lines too.
    let mut said = output.lines().map_while(Result::ok);
    said.find(|line| line.contains("ready")).expect("it hears signals");
    send(&child, Signal::INT);
    said.find(|line| line.contains("SIGINT")).expect("it tells the first signal");
    send(&child, Signal::TERM);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("stopped by force"), "{said}");
}

#[test]
fn a_program_with_unread_output_continues_until_two_signals() {
    if std::env::var_os(UNREAD).is_some() {
        log_much();
    }
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["a_program_with_unread_output_continues_until_two_signals", "--nocapture"])
        .env(UNREAD, "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let mut said = output.lines().map_while(Result::ok);
    // The lines logged before this are more than fit into the pipe, which is not read until now.
    said.find(|line| line.contains("all is logged")).expect("logging does not block");
    send(&child, Signal::TERM);
    said.find(|line| line.contains("SIGTERM")).expect("it tells the first signal");
    send(&child, Signal::TERM);
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(1));
}

fn log_much() -> ! {
    let backlog_bytes_max = 1 << 20;
    crate::logging::Logging { backlog_bytes_max, ..Default::default() }.install();
    let mut received = receive(Duration::from_millis(10)).unwrap();
    for number in 0..100_000 {
        tracing::info!("line {number}, which is not short");
    }
    println!("all is logged");
    println!("heard {}", received.blocking_recv().unwrap());
    loop {
        std::thread::park();
    }
}

fn be_stuck() -> ! {
    let mut received = receive(Duration::from_millis(10)).unwrap();
    println!("ready");
    println!("heard {}", received.blocking_recv().unwrap());
    loop {
        std::thread::park();
    }
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("it is still there");
}
