//! Starts and stops the parts of a control plane, across our own processes.
//!
//! A pid file names each part; a pid is used only if its program has the expected name, since pids
//! are reused and `down` must not kill another process.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::state::State;

const STOP_TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Starts `<folder>/<part>` detached from our terminal and process group.
pub(super) fn spawn(folder: &Path, part: &str, flags: &[String], state: &State) -> Result<()> {
    let log = File::create(state.log_file(part))?;
    let child = Command::new(folder.join(part))
        .args(flags)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .current_dir(state.file("."))
        .process_group(0)
        .spawn()
        .with_context(|| format!("could not start {part}"))?;
    fs::write(state.pid_file(part), child.id().to_string())?;
    Ok(())
}

pub(super) fn is_alive(pid_file: &Path, part: &str) -> bool {
    living_pid(pid_file, part).is_some()
}

/// Stops the part named by the pid file; does nothing if it is gone.
pub(super) fn stop(pid_file: &Path, part: &str) -> Result<()> {
    for signal in ["TERM", "KILL"] {
        let Some(pid) = living_pid(pid_file, part) else { return Ok(()) };
        Command::new("kill").args(["-s", signal, &pid.to_string()]).status()?;
        let deadline = Instant::now() + STOP_TIMEOUT;
        while Instant::now() < deadline && is_alive(pid_file, part) {
            std::thread::sleep(POLL_INTERVAL);
        }
    }
    match living_pid(pid_file, part) {
        Some(pid) => bail!("process {pid} survived KILL"),
        None => Ok(()),
    }
}

/// The process id of the part named by the pid file, if it runs.
pub(super) fn living_pid(pid_file: &Path, part: &str) -> Option<u32> {
    let pid = fs::read_to_string(pid_file).ok()?.trim().parse().ok()?;
    // The name is at the end of the second column, truncated to 15 bytes by the kernel; a zombie
    // (`Z`) has ended, but its parent has not noticed yet.
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    is_running(&stat, part).then_some(pid)
}

fn is_running(stat: &str, part: &str) -> bool {
    let kernel_name = &part[..part.len().min(15)];
    let Some((_, rest)) = stat.split_once('(') else { return false };
    let Some((name, rest)) = rest.rsplit_once(") ") else { return false };
    name == kernel_name && !rest.starts_with(['Z', 'X'])
}

#[cfg(test)]
mod tests {
    use super::is_running;

    #[test]
    fn a_pid_counts_only_with_our_name_and_not_as_a_zombie() {
        assert!(is_running("12 (kube-controller) S 1 2", "kube-controller-manager"));
        assert!(is_running("12 (etcd) R 1 2", "etcd"));
        assert!(!is_running("12 (bash) S 1 2", "etcd"));
        assert!(!is_running("12 (etcd) Z 1 2", "etcd"));
        assert!(!is_running("", "etcd"));
    }
}
