//! The counted cases: five of the engine, six of the embedded server.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::valgrind::{Tool, Watched};
use crate::engine::server::Server;
use crate::engine::subject::Subject;

/// Objects of the smaller run, and of runs that differ only in what happens afterwards.
const FEW: usize = 200;
/// Objects of the larger run.
const MANY: usize = 1200;
/// Valgrind is slow, and more so on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(120);
const HANDLING_TIMEOUT_MS: usize = 400_000;
/// How often a run of changes is repeated.
const REPEATS: usize = 3;

/// One row.
pub(super) struct Case {
    pub(super) name: &'static str,
    job: Job,
}

enum Job {
    /// Objects created while the operator of this case watches.
    Burst(&'static str),
    /// Objects that exist before the operator starts.
    Cold,
    /// Changes of handled objects: the operator's case, the server's command, and how often.
    Changes(&'static str, &'static str, usize),
    /// Requests to the embedded server.
    Requests(&'static str),
}

/// One run of an operator.
struct Run<'a> {
    case: &'a str,
    objects: usize,
    is_cold: bool,
    changes: Option<String>,
}

impl Case {
    pub(super) const ALL: [Self; 12] = [
        Self { name: "handled creation", job: Job::Burst("create") },
        Self { name: "with a delete handler", job: Job::Burst("delete") },
        Self { name: "cold start", job: Job::Cold },
        Self { name: "no-op event", job: Job::Changes("create", "touch", 5) },
        Self { name: "handled update", job: Job::Changes("update", "edit", 1) },
        Self { name: "server: create", job: Job::Requests("create") },
        Self { name: "server: patch", job: Job::Requests("patch") },
        Self { name: "server: apply", job: Job::Requests("apply") },
        Self { name: "server: get", job: Job::Requests("get") },
        Self { name: "server: list of 100", job: Job::Requests("list") },
        Self { name: "server: start", job: Job::Requests("start") },
        Self { name: "server: fork", job: Job::Requests("fork") },
    ];

    /// Valgrind does not support the allocator of the server.
    pub(super) fn counts_allocations(&self) -> bool {
        !matches!(self.job, Job::Requests(_))
    }

    /// The count per object, event or request.
    pub(super) fn count(&self, tool: Tool) -> Result<f64> {
        let burst = |case, objects| Run { case, objects, is_cold: false, changes: None };
        let (few, many, more) = match &self.job {
            Job::Burst(case) => {
                (burst(case, FEW).count(tool)?, burst(case, MANY).count(tool)?, MANY - FEW)
            }
            Job::Cold => {
                let cold = |objects| Run { is_cold: true, ..burst("create", objects) }.count(tool);
                (cold(FEW)?, cold(MANY)?, MANY - FEW)
            }
            Job::Changes(case, command, rounds) => {
                let changes = Some(format!("{command} {rounds}"));
                let objects = if *rounds > 1 { FEW } else { MANY };
                let created = burst(case, objects);
                let changed = Run { changes, ..burst(case, objects) };
                (created.lowest(tool)?, changed.lowest(tool)?, objects * rounds)
            }
            Job::Requests(kind) => {
                (requests(kind, FEW, tool)?, requests(kind, MANY, tool)?, MANY - FEW)
            }
        };
        #[expect(clippy::cast_precision_loss, reason = "counts of a benchmark are small")]
        Ok((many - few) / more as f64)
    }
}

impl Run<'_> {
    /// The lowest count of several runs. A small change costs less if the operator takes it together
    /// with others, so the count depends on how fast they arrive.
    fn lowest(&self, tool: Tool) -> Result<f64> {
        let mut lowest = f64::INFINITY;
        for _ in 0..REPEATS {
            lowest = lowest.min(self.count(tool)?);
        }
        Ok(lowest)
    }

    fn count(&self, tool: Tool) -> Result<f64> {
        let mut server = Server::start(Subject::Ours)?;
        let create = format!("create it {}", self.objects);
        if self.is_cold {
            server.ask(&create)?;
        }
        let arguments = ["run", "--quiet", "--standalone", "--all-namespaces"];
        let environment =
            [("KUBECONFIG", server.kubeconfig.as_os_str()), ("CASE", self.case.as_ref())];
        let operator = Watched::start(tool, "bench-operator", &arguments, &environment)?;
        let waiting = Instant::now();
        while server.ask("watching")?["at"].is_null() {
            ensure!(waiting.elapsed() < START_TIMEOUT, "the operator does not watch");
            std::thread::sleep(Duration::from_millis(20));
        }
        if !self.is_cold {
            server.ask(&create)?;
        }
        wait_for_handling(&mut server, self.objects)?;
        operator.process.settle()?;
        if let Some(changes) = &self.changes {
            server.ask("counts")?;
            server.ask(changes)?;
            operator.process.settle()?;
            let counts = server.ask("counts")?;
            let writes = counts["PATCH merge"].as_u64().unwrap_or_default();
            let expected = if self.case == "update" { self.objects } else { 0 };
            ensure!(writes == expected as u64, "{counts} writes instead of {expected}");
        }
        operator.stop()
    }
}

fn wait_for_handling(server: &mut Server, count: usize) -> Result<()> {
    let answer = server.ask(&format!("handled {count} {HANDLING_TIMEOUT_MS}"))?;
    ensure!(answer["in_time"] == true, "{} of {count} were handled", answer["handled"]);
    Ok(())
}

fn requests(kind: &str, count: usize, tool: Tool) -> Result<f64> {
    Watched::start(tool, "bench-requests", &[kind, &count.to_string()], &[])?.wait()
}
