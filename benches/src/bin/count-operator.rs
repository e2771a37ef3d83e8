//! Our operator for `cargo xtask chaos --count`: every call writes one line to the file `$CALLS`.
//!
//! The write that stores the success also stores which call it was, so that the history of an object
//! tells which calls were stored. `benches/peers/controller-runtime/count` is the same operator in
//! Go.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use kopf::input::Object;
use kopf::prelude::*;

/// With the prefix of the operator's own annotations, so that it is no change of the object.
const COUNTED_BY: [&str; 3] = ["metadata", "annotations", "kopf.zalando.org/counted-by"];

static CALLS: LazyLock<File> = LazyLock::new(|| {
    let path = std::env::var_os("CALLS").expect("$CALLS names the file of calls");
    OpenOptions::new().create(true).append(true).open(path).expect("$CALLS can be written")
});
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// The side effect that must happen once for every change.
#[kopf::on::create("bench.kopf.dev", "v1", "widgets")]
#[kopf::on::update("bench.kopf.dev", "v1", "widgets")]
async fn count(object: &Object, patch: &mut Patch) {
    let meta = &object.value()["metadata"];
    let pid = std::process::id();
    let id = format!("{pid}-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    let line = json!({
        "id": id,
        "at": SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs_f64(),
        "pid": pid,
        "uid": meta["uid"],
        "generation": meta["generation"],
        "acts": true,
    });
    let mut calls = &*CALLS;
    // Appending a short line to a file is atomic.
    calls.write_all(format!("{line}\n").as_bytes()).expect("$CALLS can be written");
    patch.set(COUNTED_BY, id);
}

/// The default times of Leases, in the same proportions for another duration.
fn use_lease_duration(settings: &mut kopf::Settings) {
    let Ok(text) = std::env::var("LEASE_SECONDS") else { return };
    let lease: f64 = text.parse().expect("$LEASE_SECONDS is a number");
    let leadership = &mut settings.leadership;
    let factor = lease / leadership.lease_duration.as_secs_f64();
    leadership.lease_duration = Duration::from_secs_f64(lease);
    leadership.renew_deadline = leadership.renew_deadline.mul_f64(factor);
    leadership.retry_period = leadership.retry_period.mul_f64(factor);
}

fn main() -> kopf::Exit {
    kopf::operator!("count", [count]).settings(use_lease_duration).main()
}
