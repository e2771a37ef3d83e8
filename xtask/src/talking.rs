//! A program that is read line by line while it runs, and ended as by Ctrl-C in a terminal.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// A running program, and the lines of its standard output, which are printed as well.
pub(crate) struct Talking {
    process: Child,
    lines: Receiver<String>,
}

impl Talking {
    /// Starts it in a process group of its own: Ctrl-C reaches it and the programs that it starts.
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
                    // Nobody listens any more; the output must be read to its end all the same.
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

    /// Presses Ctrl-C, and waits for the end.
    pub(crate) fn interrupt(mut self) -> Result<ExitStatus> {
        let group = format!("-{}", self.process.id());
        // A group that is gone already needs no signal; its exit status tells the rest.
        Command::new("kill").args(["-INT", "--", &group]).stderr(Stdio::null()).status()?;
        Ok(self.process.wait()?)
    }
}
