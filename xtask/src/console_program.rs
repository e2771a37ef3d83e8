//! A program whose output is read line by line while it runs, and which is ended by Ctrl-C.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// A running program and the lines of its standard output, which are also printed.
pub(crate) struct ConsoleProgram {
    process: Child,
    lines: Receiver<String>,
}

impl ConsoleProgram {
    /// Starts it in its own process group: Ctrl-C also reaches the programs that it starts.
    pub(crate) fn start(mut command: Command) -> Result<Self> {
        let mut process =
            command.process_group(0).stdout(Stdio::piped()).spawn().with_context(|| {
                format!("could not start `{}`", command.get_program().display())
            })?;
        let output = process.stdout.take().context("the output was not captured")?;
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                println!("   {line}");
                if sender.send(line).is_err() {
                    // Nothing receives the lines any more, but the output must still be read.
                    continue;
                }
            }
        });
        Ok(Self { process, lines })
    }

    /// The next line that contains the text.
    pub(crate) fn wait_for(&self, text: &str, patience: Duration) -> Result<String> {
        let deadline = Instant::now() + patience;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) if line.contains(text) => return Ok(line),
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => bail!("`{text}` was not printed in time"),
                Err(RecvTimeoutError::Disconnected) => bail!("it ended before it printed `{text}`"),
            }
        }
    }

    /// Sends SIGINT, as Ctrl-C does, and waits for the end.
    pub(crate) fn interrupt(mut self) -> Result<ExitStatus> {
        let group = format!("-{}", self.process.id());
        // A group that is gone needs no signal; the caller checks the exit status.
        Command::new("kill").args(["-INT", "--", &group]).stderr(Stdio::null()).status()?;
        Ok(self.process.wait()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Result<ConsoleProgram> {
        let mut command = Command::new("bash");
        command.args(["-c", script]);
        ConsoleProgram::start(command)
    }

    #[test]
    fn lines_are_found_and_ctrl_c_ends_the_program() -> Result<()> {
        let program =
            shell("trap 'exit 3' INT; echo first; echo second; while :; do sleep 1; done")?;
        let line = program.wait_for("sec", Duration::from_secs(30))?;
        assert_eq!(line, "second");
        assert_eq!(program.interrupt()?.code(), Some(3));
        Ok(())
    }

    #[test]
    fn a_missing_line_is_reported_when_the_program_ends() -> Result<()> {
        let program = shell("echo first")?;
        let error = program.wait_for("second", Duration::from_secs(30));
        assert!(error.is_err_and(|error| error.to_string().contains("before it printed `second`")));
        Ok(())
    }
}
