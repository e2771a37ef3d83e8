//! Separate cores for the server and the operators.
//!
//! By default, the kernel tends to put a process that is woken through a socket on the core of its
//! waker, where the two take turns while other cores are idle; this differs from run to run. With
//! separate cores, all operators have the same conditions in every run.

use std::sync::OnceLock;

use anyhow::{Context, Result};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::Side;

/// The cores of each side, if there are enough for both.
struct Cores {
    all: CpuSet,
    server: CpuSet,
    operator: CpuSet,
}

static CORES: OnceLock<Cores> = OnceLock::new();

/// Assigns the first half of the cores to the server and the others to the operators; a single core
/// is shared.
pub(crate) fn split_cores() -> Result<()> {
    let all = sched_getaffinity(None).context("the kernel does not tell our cores")?;
    let numbers: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|core| all.is_set(*core)).collect();
    let Some((server, operator)) = halves(&numbers) else {
        println!("one core for all: the server takes its share of the operators' time");
        return Ok(());
    };
    println!("the server runs on cores {server:?}, operators on {operator:?}");
    CORES.get_or_init(|| Cores { all, server: set_of(server), operator: set_of(operator) });
    Ok(())
}

fn halves(cores: &[usize]) -> Option<(&[usize], &[usize])> {
    (cores.len() > 1).then(|| cores.split_at(cores.len() / 2))
}

fn set_of(cores: &[usize]) -> CpuSet {
    let mut set = CpuSet::new();
    for core in cores {
        set.set(*core);
    }
    set
}

/// Starts a process on the cores of its side, which it inherits from the thread that starts it.
pub(crate) fn on_cores_of<T>(side: Side, start: impl FnOnce() -> T) -> Result<T> {
    let Some(cores) = CORES.get() else { return Ok(start()) };
    let own = match side {
        Side::Server => &cores.server,
        Side::Operator => &cores.operator,
    };
    sched_setaffinity(None, own).context("the kernel does not let us choose cores")?;
    let started = start();
    sched_setaffinity(None, &cores.all).context("the kernel does not give our cores back")?;
    Ok(started)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_halved() {
        assert_eq!(halves(&[3]), None);
        assert_eq!(halves(&[0, 1]), Some(([0].as_slice(), [1].as_slice())));
        assert_eq!(halves(&[1, 4, 5]), Some(([1].as_slice(), [4, 5].as_slice())));
    }
}
