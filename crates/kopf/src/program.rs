//! `Operator::main`: a whole program around an operator.
//!
//! Owns the command-line arguments with Kopf's names and environment variables, the runtime,
//! signals and the exit code. The engine does everything else.

mod arguments;
mod describe;
#[cfg(feature = "embedded")]
mod embedded;
#[cfg(feature = "embedded")]
mod manifests;
mod output;
mod plan;
mod signals;

use std::process::{ExitCode, Termination};

use clap::{CommandFactory as _, FromArgMatches as _};
use tokio::runtime::Builder;

use self::arguments::{Arguments, Command, RunArguments};
use self::output::OutputArguments;
use kopf_cli::failure::Failure;
use kopf_engine::{EngineError, ProbesError};

use crate::{Operator, RunError, Running, logging};

/// How long handler threads may continue after everything else has ended, as in Kopf.
const HUNG_THREADS_GRACE: std::time::Duration = std::time::Duration::from_secs(5);
/// How long the program may take to exit by itself after the second signal.
const LAST_GRACE: std::time::Duration = std::time::Duration::from_secs(6);
/// How long to wait for the last lines to be read from standard error.
const OUTPUT_GRACE: std::time::Duration = std::time::Duration::from_secs(1);
/// If set, the operator stops when its standard input closes, as for `kopf dev`.
const UNTIL_STDIN_CLOSES: &str = "KOPF_RUN_UNTIL_STDIN_CLOSES";

/// How the program ended; returned from `main`.
#[must_use = "return it from `main`"]
#[derive(Debug)]
pub struct Exit(u8);

impl Termination for Exit {
    fn report(self) -> ExitCode {
        ExitCode::from(self.0)
    }
}

/// Why the operator is started.
#[derive(Clone, Copy)]
enum Purpose<'a> {
    /// To handle objects.
    Work,
    /// To print what would be done about desired children.
    Plan(&'a OutputArguments),
}

impl Operator {
    /// Runs the operator as a program with the arguments of the process.
    ///
    /// `run` has Kopf's options and environment variables; `--help` describes the rest.
    ///
    /// ```no_run
    /// fn main() -> kopf::Exit {
    ///     kopf::Operator::new("demo").main()
    /// }
    /// ```
    pub fn main(self) -> Exit {
        let mut command = Arguments::command();
        // The command line shows the name of the program; the title shows that of the operator.
        command = command.about(format!("The Kubernetes operator `{}`", self.name()));
        let matches = command.get_matches();
        let arguments = match Arguments::from_arg_matches(&matches) {
            Ok(arguments) => arguments,
            Err(error) => error.exit(),
        };
        let outcome = match arguments.command {
            Command::Run(arguments) => self.run_program(&arguments, Purpose::Work),
            Command::Plan(arguments) => {
                let (run, output) = arguments.split();
                self.run_program(&run, Purpose::Plan(&output))
            }
            Command::Describe(output) => {
                output.text(|| describe::document(&self)).map(|document| {
                    print!("{}", document.unwrap_or_else(|| describe::text(&self)));
                })
            }
            #[cfg(feature = "embedded")]
            Command::Manifests(arguments) => manifests::run(&self, &arguments),
        };
        match outcome {
            Ok(()) => {
                logging::flush(OUTPUT_GRACE);
                Exit(0)
            }
            Err(failure) => {
                logging::print_last(failure.render(), OUTPUT_GRACE);
                Exit(failure.code())
            }
        }
    }

    fn run_program(self, arguments: &RunArguments, purpose: Purpose<'_>) -> Result<(), Failure> {
        self.check().map_err(Failure::usage)?;
        let config = arguments.config(self.name())?;
        let runtime = runtime()?;
        let outcome = runtime.block_on(async {
            #[cfg(feature = "embedded")]
            if arguments.embedded.embedded {
                return embedded::run(self, arguments, config, purpose).await;
            }
            let _logs = Logs::install(arguments, self.name())?;
            match purpose {
                Purpose::Plan(output) => plan::run(self, config, output).await,
                Purpose::Work => until_stopped(self.start(config).await?).await,
            }
        });
        // Handlers on threads cannot be cancelled; one that ignores its flag must not block the
        // exit.
        runtime.shutdown_timeout(HUNG_THREADS_GRACE);
        outcome
    }
}

/// Uses few threads: the engine needs one, a second one helps when a handler blocks, and more would
/// only wake each other up. A single one is the main thread, which saves context switches and
/// memory. `TOKIO_WORKER_THREADS` sets the number of threads besides the main thread.
fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    const THREADS_MAX: usize = 4;
    if std::env::var_os("TOKIO_WORKER_THREADS").is_some() {
        return Builder::new_multi_thread().enable_all().build();
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    match (cores / 2).clamp(1, THREADS_MAX) {
        1 => Builder::new_current_thread().enable_all().build(),
        threads => Builder::new_multi_thread().worker_threads(threads).enable_all().build(),
    }
}

/// The logs of the program, and its traces if enabled; flushed on drop.
struct Logs {
    #[cfg(feature = "otlp")]
    _telemetry: Option<crate::telemetry::Telemetry>,
}

impl Logs {
    #[cfg(feature = "otlp")]
    fn install(arguments: &RunArguments, operator: &str) -> Result<Self, Failure> {
        let telemetry = crate::telemetry::Telemetry::from_environment(operator);
        let telemetry = telemetry.map_err(|error| {
            Failure::usage(error)
                .hint("write OTEL_EXPORTER_OTLP_ENDPOINT as in `http://127.0.0.1:4318`")
        })?;
        match &telemetry {
            Some(telemetry) => arguments.logging().install_beside(telemetry.layer()),
            None => arguments.logging().install(),
        }
        Ok(Self { _telemetry: telemetry })
    }

    #[cfg(not(feature = "otlp"))]
    fn install(arguments: &RunArguments, _operator: &str) -> Result<Self, Failure> {
        arguments.logging().install();
        Ok(Self {})
    }
}

/// Waits until the operator ends or a signal arrives; a second signal ends the process at once.
async fn until_stopped(running: Running) -> Result<(), Failure> {
    let mut signals = signals::receive(LAST_GRACE)?;
    let stopper = running.stopper();
    let ended = running.wait();
    tokio::pin!(ended);
    let name = tokio::select! {
        outcome = &mut ended => return outcome.map_err(explained),
        name = signals.recv() => name,
        () = stdin_closed() => None,
    };
    match name {
        Some(name) => {
            tracing::info!(target: "kopf", "Signal {name} is received. Operator is stopping.");
        }
        None => tracing::info!(target: "kopf", "The parent is gone. Operator is stopping."),
    }
    stopper.stop();
    tokio::select! {
        outcome = &mut ended => outcome.map_err(explained),
        Some(_) = signals.recv() => Err(signals::forced()),
    }
}

/// Resolves when standard input closes, for programs that run an operator and may be killed.
async fn stdin_closed() {
    if std::env::var_os(UNTIL_STDIN_CLOSES).is_none() {
        return std::future::pending().await;
    }
    let (sender, closed) = tokio::sync::oneshot::channel();
    // Not a runtime task: the runtime would wait for this read when it shuts down.
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        let _ = sender.send(());
    });
    let _ = closed.await;
}

/// Adds advice to failures for which there is some.
fn explained(error: RunError) -> Failure {
    let hint = match &error {
        RunError::Engine(EngineError::Login(_)) => {
            "set KUBECONFIG to a cluster that can be reached, or bring one along: `run --embedded`"
        }
        RunError::Engine(EngineError::Admission(_)) => {
            "say where webhooks are answered, such as `--webhook 0.0.0.0:9443`"
        }
        RunError::Engine(EngineError::Probes(ProbesError::Metrics(_))) => {
            "choose another port with `--metrics`, or check the files of `--metrics-certificate`"
        }
        RunError::Engine(EngineError::Probes(_)) => "choose another port with `--liveness`",
        _ => return Failure::from(error),
    };
    Failure::from(error).hint(hint)
}

#[cfg(test)]
mod tests;
