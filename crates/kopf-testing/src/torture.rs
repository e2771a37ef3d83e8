//! Torture: a scenario with crashes anywhere, losses and delays ends like an undisturbed one.
//!
//! Owns the rounds and their comparison; `disturbances` decides what happens to each request.

use std::panic::AssertUnwindSafe;
use std::str::FromStr;
use std::sync::Arc;

use futures::FutureExt as _;

use crate::account::Rights;
use crate::difference;
use crate::disturbances::Disturbances;
use crate::scenario_result::{ScenarioResult, panic_text};
use crate::snapshot::Snapshot;
use crate::world::{World, in_world};

/// The first seed, so that the same rounds run every time.
const FIRST_SEED: u64 = 0x6b6f_7066;
/// Runs only the round with this seed.
const SEED_VARIABLE: &str = "KOPF_TORTURE_SEED";
/// Sets the number of rounds of every test.
const ROUNDS_VARIABLE: &str = "KOPF_TORTURE_ROUNDS";

/// Runs a scenario undisturbed, and then this many times under torture; all runs must end in the
/// same state.
///
/// Every round kills the operator at some of its requests, before or after the server has processed
/// them. Every second round also rejects, delays and breaks requests, repeats old responses to
/// lists until the next kill, and loses, repeats and delays the events of watches. Rounds are
/// reproducible.
/// `KOPF_TORTURE_ROUNDS=500` in the environment sets the number of rounds.
///
/// The scenario starts the operator with [`World::operate`]. Its `Ok` value is compared too. Timers
/// that keep writing never end in the same state: delete their objects at the end of the scenario.
///
/// ```no_run
/// # use kopf_testing::{World, WorldError, torture};
/// # use kopf_engine::{Engine, EngineBuilder};
/// # fn operator() -> EngineBuilder { Engine::builder(kopf_core::Registry::new()) }
/// torture(50, async |world: World| {
///     world.operate(operator).await;
///     let examples = world.objects("kopfexamples.v1.kopf.dev");
///     examples.create(&serde_json::json!({"metadata": {"name": "a"}})).await?;
///     examples.until("a", "the result", |it| it["status"].is_object()).await?;
///     Ok::<(), WorldError>(())
/// });
/// ```
///
/// # Panics
/// Panics if the undisturbed scenario fails, or if a round fails or ends differently. The message
/// has the seed, what was done in the round, and the difference.
pub fn torture<E: ScenarioResult>(rounds: usize, scenario: impl AsyncFn(World) -> E) {
    Torture::new(rounds).run(scenario);
}

/// Torture with options.
#[derive(Clone, Debug)]
#[must_use = "nothing happens before `run`"]
pub struct Torture {
    rounds: usize,
    ignored: Vec<String>,
    has_crashes: bool,
}

/// The end of one round.
struct End {
    result: String,
    state: Snapshot,
}

impl Torture {
    /// Sets the number of rounds.
    pub fn new(rounds: usize) -> Self {
        let rounds = number_in(ROUNDS_VARIABLE).unwrap_or(rounds);
        Self { rounds, ignored: Vec::new(), has_crashes: true }
    }

    /// Ignores the field at a dotted path when final states are compared.
    pub fn ignoring(mut self, path: &str) -> Self {
        self.ignored.push(path.to_owned());
        self
    }

    /// Disables crashes; only disturbances remain.
    pub fn without_crashes(mut self) -> Self {
        self.has_crashes = false;
        self
    }

    /// Runs the scenario, undisturbed and then tortured.
    ///
    /// # Panics
    /// See [`torture`].
    pub fn run<E: ScenarioResult>(&self, scenario: impl AsyncFn(World) -> E) {
        let calm = Arc::new(Disturbances::none());
        let expected = match self.round(&calm, &scenario) {
            Ok(end) => end,
            Err(failure) => panic!("the scenario fails without any torture: {failure}"),
        };
        let requests = calm.requests();
        let only = number_in::<u64>(SEED_VARIABLE);
        for round in 0..self.rounds {
            let seed = FIRST_SEED + round as u64;
            if only.is_some_and(|only| only != seed) {
                continue;
            }
            let crashes = if self.has_crashes { requests } else { 0 };
            let disturbances = Arc::new(Disturbances::planned(seed, round, self.rounds, crashes));
            let problem = match self.round(&disturbances, &scenario) {
                Ok(end) => self.difference(&expected, &end),
                Err(failure) => failure,
            };
            assert!(
                problem.is_empty(),
                "round {round} of {} ends differently; run only it with {SEED_VARIABLE}={seed}\n\
                 what was done:\n{}\nwhat came of it (- undisturbed, + tortured):\n{problem}",
                self.rounds,
                disturbances.record(),
            );
        }
    }

    fn round<E: ScenarioResult>(
        &self,
        disturbances: &Arc<Disturbances>,
        scenario: &impl AsyncFn(World) -> E,
    ) -> Result<End, String> {
        in_world(Rights::All, Some(Arc::clone(disturbances)), async |world: World| {
            let ended = AssertUnwindSafe(scenario(world.clone())).catch_unwind().await;
            let result = match ended.map(ScenarioResult::into_text) {
                Ok(result) => result.map_err(|failure| format!("{failure}\n{}", world.logs()))?,
                Err(panic) => return Err(format!("{}\n{}", panic_text(&*panic), world.logs())),
            };
            disturbances.end();
            world.calmed().await;
            world.stop_operators().await;
            let state = world.snapshot().await.map_err(|error| error.to_string())?;
            Ok(End { result, state })
        })
    }

    fn difference(&self, expected: &End, found: &End) -> String {
        let result = difference::between(&expected.result, &found.result);
        let text = |end: &End| {
            let state = self.ignored.iter().fold(end.state.clone(), |it, path| it.without(path));
            state.to_string()
        };
        result + &difference::between(&text(expected), &text(found))
    }
}

/// The number in an environment variable.
pub(crate) fn number_in<N: FromStr>(variable: &str) -> Option<N> {
    std::env::var(variable).ok().and_then(|text| text.parse().ok())
}

#[cfg(test)]
mod tests;
