//! Decides which of the due handlers run in one cycle, and in which order.

use std::sync::Arc;

use kopf_model::CallbackError;

use crate::handler::Handler;
use crate::progress::State;

/// How to choose handlers.
#[derive(Clone, Default)]
pub enum Lifecycle {
    /// All, those with fewer attempts first. All outcomes of a cycle share one write, so there is
    /// no reason to run one handler per cycle.
    #[default]
    AsapAll,
    /// One with the fewest attempts, the default of Kopf.
    Asap,
    /// The first one in registration order.
    OneByOne,
    /// All in registration order.
    AllAtOnce,
    /// One at random.
    Randomized,
    /// All in a random order.
    Shuffled,
    /// Those that the function returns.
    Custom(Arc<ChooseFn>),
}

/// Chooses among the handlers that are due.
pub type ChooseFn =
    dyn Fn(Vec<Arc<Handler>>, &State) -> Result<Vec<Arc<Handler>>, CallbackError> + Send + Sync;

impl Lifecycle {
    /// A function that cannot fail.
    pub fn custom(
        choose: impl Fn(Vec<Arc<Handler>>, &State) -> Vec<Arc<Handler>> + Send + Sync + 'static,
    ) -> Self {
        Self::Custom(Arc::new(move |due, state| Ok(choose(due, state))))
    }

    /// Chooses among the handlers that are due.
    ///
    /// # Errors
    /// Fails when the function does.
    pub fn choose(
        &self,
        mut due: Vec<Arc<Handler>>,
        state: &State,
    ) -> Result<Vec<Arc<Handler>>, CallbackError> {
        match self {
            Self::AsapAll => due.sort_by_key(|handler| state.retries(&handler.id)),
            Self::Asap => {
                due.sort_by_key(|handler| state.retries(&handler.id));
                due.truncate(1);
            }
            Self::OneByOne => due.truncate(1),
            Self::AllAtOnce => {}
            Self::Randomized => {
                if !due.is_empty() {
                    let lucky = fastrand::usize(..due.len());
                    due.swap(0, lucky);
                    due.truncate(1);
                }
            }
            Self::Shuffled => fastrand::shuffle(&mut due),
            Self::Custom(choose) => return choose(due, state),
        }
        Ok(due)
    }
}

impl std::fmt::Debug for Lifecycle {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::AsapAll => "AsapAll",
            Self::Asap => "Asap",
            Self::OneByOne => "OneByOne",
            Self::AllAtOnce => "AllAtOnce",
            Self::Randomized => "Randomized",
            Self::Shuffled => "Shuffled",
            Self::Custom(_) => "Custom",
        })
    }
}

#[cfg(test)]
mod tests;
