//! Human-readable errors: one sentence, the chain of causes, a hint, an exit code.
//!
//! Library crates return typed errors; they become text only here, for the `kopf` command and for
//! the program of every operator.

use std::error::Error;
use std::fmt::Write as _;
use std::process::ExitCode;

/// The exit code if something failed while running.
pub const EXIT_FAILED: u8 = 1;
/// The exit code if the arguments or the files they name are wrong.
pub const EXIT_USAGE: u8 = 2;

/// A failure with a hint, if there is one.
#[derive(Debug)]
pub struct Failure {
    error: Box<dyn Error + Send + Sync>,
    hint: Option<String>,
    code: u8,
}

impl Failure {
    /// A failure at run time.
    pub fn new(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { error: error.into(), hint: None, code: EXIT_FAILED }
    }

    /// A failure caused by the user's input.
    pub fn usage(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { error: error.into(), hint: None, code: EXIT_USAGE }
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The code to exit with.
    #[must_use]
    pub fn code(&self) -> u8 {
        self.code
    }

    /// The whole text: error, causes, hint.
    #[must_use]
    pub fn render(&self) -> String {
        let mut text = format!("error: {}\n", self.error);
        let mut said = self.error.to_string();
        let causes = std::iter::successors(self.error.source(), |&cause| cause.source());
        for cause in causes.map(ToString::to_string) {
            // Many libraries repeat the cause in their own text.
            if !said.contains(&cause) {
                let _infallible = writeln!(text, "  caused by: {}", cause.replace('\n', "\n    "));
            }
            said = cause;
        }
        if let Some(hint) = &self.hint {
            let _infallible = writeln!(text, "hint: {hint}");
        }
        text
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::new(error)
    }
}

/// Prints a failure, if there is one, and returns the exit code.
pub fn exit(outcome: Result<(), Failure>) -> ExitCode {
    ExitCode::from(code(outcome))
}

/// The same as a number.
pub fn code(outcome: Result<(), Failure>) -> u8 {
    match outcome {
        Ok(()) => 0,
        Err(failure) => {
            eprint!("{}", failure.render());
            failure.code
        }
    }
}

#[cfg(test)]
mod tests;
