//! A leader with one standby is killed: how long changes wait, and what the new leader does again.

use anyhow::{Context, Result};

use super::replica::{Job, Replica, Signal};
use super::{RATE, latencies, percentile, rest, wait_for_handling};
use crate::engine::server::Server;
use crate::engine::subject::Subject;
use crate::table::{Table, Target};

/// For how many seconds objects are created after the leader was killed.
const SECONDS: usize = 30;
/// The duration of a Lease, and one second.
const WAIT_MAX_MS: f64 = 16_000.0;

/// Measures one fail-over.
pub(super) fn measure(subject: Subject, objects: usize, table: &mut Table) -> Result<()> {
    println!("── fail-over of {}, {objects} objects", subject.name());
    let job = if subject == Subject::Ours { Job::Standby } else { Job::ControllerRuntime };
    let mut server = Server::start(subject)?;
    server.ask(&format!("create it {objects}"))?;
    let leader = Replica::start(job, &server)?;
    wait_for_handling(&mut server, objects)?;
    let standby = Replica::start(job, &server)?;
    rest();
    server.ask("lists")?;
    leader.signal(Signal::Kill)?;
    let count = RATE * SECONDS;
    server.ask(&format!("paced late {count} {RATE}"))?;
    wait_for_handling(&mut server, objects + count)?;
    let latencies = latencies(&mut server, "late")?;
    let name = |what: &str| format!("fail-over of {}: {what}", subject.name());
    let target = if subject == Subject::Ours { Target::AtMost(WAIT_MAX_MS) } else { Target::Free };
    table.add(&name("longest reaction"), percentile(&latencies, 1.0), "ms", target);
    let lists = server.ask("lists")?["lists"].as_f64().context("the server counts no lists")?;
    let none = if subject == Subject::Ours { Target::AtMost(0.0) } else { Target::Free };
    table.add(&name("lists by the new leader"), lists, "", none);
    #[expect(clippy::cast_precision_loss, reason = "objects of a benchmark are few")]
    let again = standby.calls()? - count as f64;
    table.add(&name("calls for objects that were handled"), again, "", none);
    Ok(())
}
