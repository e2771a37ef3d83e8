//! A server that is killed without warning loses no acknowledged writes.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use kopf_apiserver::{Server, Target};
use serde_json::json;

/// Set in the process that writes and is killed: its data directory.
const VICTIM: &str = "KOPF_CRASH_TEST_DIRECTORY";
const WRITES_BEFORE_KILL: usize = 40;

/// Writes until killed; prints each acknowledged write.
async fn write_until_killed(directory: &str) {
    let server = Server::builder().controllers(false).open(directory).unwrap();
    let client = server.local();
    for number in 0.. {
        let name = format!("acknowledged-{number}");
        let object = json!({"metadata": {"name": name}});
        client.create("configmaps", "default", object).await.unwrap();
        println!("\n{name}");
    }
}

#[tokio::test]
async fn acknowledged_writes_survive_a_kill() {
    if let Ok(directory) = std::env::var(VICTIM) {
        return write_until_killed(&directory).await;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::acknowledged_writes_survive_a_kill", "--nocapture"])
        .env(VICTIM, directory.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
    let acknowledged: Vec<String> = lines
        .map(Result::unwrap)
        .filter(|line| line.starts_with("acknowledged-"))
        .take(WRITES_BEFORE_KILL)
        .collect();
    victim.kill().unwrap();
    victim.wait().unwrap();
    assert_eq!(acknowledged.len(), WRITES_BEFORE_KILL);
    let server = Server::builder().controllers(false).open(directory.path()).unwrap();
    for name in &acknowledged {
        let target = Target::new("configmaps", "default", name);
        assert!(server.local().get(target).await.is_ok(), "{name} is lost");
    }
}
