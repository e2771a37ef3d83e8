//! Kill -9: a scenario whose process is killed at any request ends like an undisturbed one.
//!
//! Owns the rounds and their comparison. `program` starts the process and kills it at the requests
//! that `disturbances` chooses. Everything is real here except the cluster.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::time::Instant;

use crate::account::Rights;
use crate::difference;
use crate::disturbances::Disturbances;
use crate::program::Program;
use crate::scenario_result::{ScenarioResult, panic_text};
use crate::torture::number_in;
use crate::world::{World, in_world_of};

/// Sets the number of rounds of every test.
const ROUNDS_VARIABLE: &str = "KOPF_KILL_ROUNDS";
/// How long nothing must happen before the final state is compared.
const QUIET: Duration = Duration::from_millis(500);
/// How often to check whether anything happens.
const CHECK_INTERVAL: Duration = Duration::from_millis(25);
/// How long a killed run may take to reach the same final state.
const PATIENCE: Duration = Duration::from_secs(20);
/// How many lines of a program's output are shown.
const LINES_MAX: usize = 60;

impl Program {
    /// Runs a scenario with this program instead of the operator, undisturbed and then killed, like
    /// [`kill_test`].
    ///
    /// This allows the same scenario to be tortured and killed: [`World::operate`] starts the
    /// program.
    ///
    /// # Panics
    /// See [`kill_test`].
    pub fn kill_test<E: ScenarioResult>(self, rounds: usize, scenario: impl AsyncFn(World) -> E) {
        KillTest::new(rounds).of(self).run(scenario);
    }
}

/// Runs a scenario undisturbed, and then this many times with its process killed; all runs must end
/// in the same state.
///
/// The scenario starts a process with [`World::launch`]. In each round it is killed (`kill -9`) at
/// one of its requests, evenly spaced over all of them, before or after the server has processed
/// it; then it is started again. The cluster has RBAC enabled, and the process has only the rights
/// of its own manifests. Time is real, so scenarios should wait only for what happens anyway.
/// `KOPF_KILL_ROUNDS=50` in the environment sets the number of rounds.
///
/// # Panics
/// Panics if the undisturbed scenario fails or a request of it is forbidden, or if a round fails or
/// ends differently. The message has what was done, the difference, and the output of the program.
pub fn kill_test<E: ScenarioResult>(rounds: usize, scenario: impl AsyncFn(World) -> E) {
    KillTest::new(rounds).run(scenario);
}

/// A test with a killed program, with options.
#[derive(Clone, Debug)]
#[must_use = "nothing happens before `run`"]
pub struct KillTest {
    rounds: usize,
    ignored: Vec<String>,
    program: Option<Program>,
}

/// The end of one round: the result of the scenario, and the state of the world.
struct End {
    result: String,
    state: String,
}

impl KillTest {
    /// Sets the number of rounds.
    pub fn new(rounds: usize) -> Self {
        let rounds = number_in(ROUNDS_VARIABLE).unwrap_or(rounds);
        Self { rounds, ignored: Vec::new(), program: None }
    }

    /// Runs this program instead of the operator of [`World::operate`].
    pub fn of(mut self, program: Program) -> Self {
        self.program = Some(program);
        self
    }

    /// Ignores the field at a dotted path when final states are compared.
    pub fn ignoring(mut self, path: &str) -> Self {
        self.ignored.push(path.to_owned());
        self
    }

    /// Runs the scenario, undisturbed and then killed.
    ///
    /// # Panics
    /// See [`kill_test`].
    pub fn run<E: ScenarioResult>(&self, scenario: impl AsyncFn(World) -> E) {
        let calm = Arc::new(Disturbances::none());
        let expected = match self.round(&calm, None, &scenario) {
            Ok(end) => end,
            Err(failure) => panic!("the scenario fails without any kill: {failure}"),
        };
        let (requests, rounds) = (calm.requests(), self.rounds);
        assert!(requests > 0, "the scenario starts a program with `world.launch`");
        let mut kills = 0;
        for number in 0..rounds {
            let disturbances = Arc::new(Disturbances::killing(number, rounds, requests));
            let outcome = self.round(&disturbances, Some(&expected), &scenario);
            let record = disturbances.record();
            if let Err(problem) = outcome {
                panic!(
                    "round {number} of {rounds} ends differently\nwhat was done:\n{record}\n{problem}"
                );
            }
            kills += usize::from(!record.is_empty());
        }
        assert!(rounds == 0 || kills > 0, "no round came so far as to be killed");
    }

    fn round<E: ScenarioResult>(
        &self,
        disturbances: &Arc<Disturbances>,
        expected: Option<&End>,
        scenario: &impl AsyncFn(World) -> E,
    ) -> Result<End, String> {
        let program = self.program.clone();
        in_world_of(program, Rights::Own, Some(Arc::clone(disturbances)), async |world: World| {
            let ended = AssertUnwindSafe(scenario(world.clone())).catch_unwind().await;
            let result = match ended.map(ScenarioResult::into_text) {
                Ok(Ok(result)) => result,
                Ok(Err(failure)) => return Err(with_output(&world, &failure)),
                Err(panic) => return Err(with_output(&world, &panic_text(&*panic))),
            };
            let end = self.finish(&world, disturbances, result, expected).await;
            let programs = std::mem::take(&mut *world.0.programs.lock());
            for life in &programs {
                let forbidden = life.requests(world.server()).answered(403);
                if !forbidden.is_empty() {
                    return Err(format!("the program lacks rights:\n{forbidden}"));
                }
                life.end().await;
            }
            end
        })
    }

    /// Waits until nothing happens any more and the state is as expected.
    async fn finish(
        &self,
        world: &World,
        disturbances: &Disturbances,
        result: String,
        expected: Option<&End>,
    ) -> Result<End, String> {
        let deadline = Instant::now() + PATIENCE;
        quiet(world, disturbances, deadline).await;
        // Fewer requests than in the undisturbed run are not a failure.
        disturbances.end();
        loop {
            quiet(world, disturbances, deadline).await;
            let state = world.snapshot().await.map_err(|error| error.to_string())?;
            let state = self.ignored.iter().fold(state, |it, path| it.without(path)).to_string();
            let Some(expected) = expected else { return Ok(End { result, state }) };
            let message_difference = difference::between(&expected.result, &result);
            // The result of the scenario is final; the state may still change.
            let is_final = !message_difference.is_empty() || Instant::now() >= deadline;
            let problem = message_difference + &difference::between(&expected.state, &state);
            if problem.is_empty() {
                return Ok(End { result, state });
            }
            if is_final {
                let problem = format!("what came of it (- undisturbed, + killed):\n{problem}");
                return Err(with_output(world, &problem));
            }
        }
    }
}

/// Resolves when the program watches and nothing has happened for a while.
async fn quiet(world: &World, disturbances: &Disturbances, deadline: Instant) {
    let glance = || (world.server().resource_version(), disturbances.requests());
    let (mut seen, mut since) = (glance(), Instant::now());
    while Instant::now() < deadline {
        tokio::time::sleep(CHECK_INTERVAL).await;
        world.server().settle().await;
        let newest = glance();
        if newest != seen || !disturbances.is_watching() {
            (seen, since) = (newest, Instant::now());
        } else if since.elapsed() >= QUIET {
            return;
        }
    }
}

fn with_output(world: &World, problem: &str) -> String {
    let programs = world.0.programs.lock().clone();
    let mut text = problem.to_owned();
    for life in programs {
        let output = life.output();
        let lines: Vec<&str> = output.lines().collect();
        let lines = &lines[lines.len().saturating_sub(LINES_MAX)..];
        text.push_str("\nwhat the program said last:\n");
        text.push_str(&lines.join("\n"));
    }
    text
}
