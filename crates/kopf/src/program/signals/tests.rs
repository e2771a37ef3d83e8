//! Claims about signals, made by this test program run once more as the one that is signalled.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::hear;

const STUCK: &str = "KOPF_TEST_STUCK";

#[test]
fn two_signals_end_a_program_that_is_stuck() {
    if std::env::var_os(STUCK).is_some() {
        be_stuck();
    }
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["two_signals_end_a_program_that_is_stuck", "--nocapture"])
        .env(STUCK, "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    // The framework prints something, too.
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

fn be_stuck() -> ! {
    let mut heard = hear(Duration::from_millis(10)).unwrap();
    println!("ready");
    println!("heard {}", heard.blocking_recv().unwrap());
    loop {
        std::thread::park();
    }
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("it is still there");
}
