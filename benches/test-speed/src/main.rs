//! Measures the duration of a `#[kopf::test]`: runs the test of `kopf new` repeatedly in one
//! process.
//!
//! The first test also prepares the server that all others are forked from. Prints JSON, in
//! milliseconds; `cargo xtask bench testing` shows it as a table.

use std::time::{Duration, Instant};

use kopf::prelude::*;
use kopf::testing::World;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many tests are run after the first one.
const TESTS: usize = 200;

/// The desired state of a Greeting.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Greeting", namespaced)]
#[kube(status = "GreetingStatus")]
struct GreetingSpec {
    /// The name of the person to greet.
    name: String,
}

/// The observed state of a Greeting, set by the operator.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
struct GreetingStatus {
    /// The greeting.
    #[serde(default)]
    message: String,
}

#[kopf::on::field(Greeting, field = "spec.name")]
async fn greet(this: &Greeting, status: &mut Status<GreetingStatus>) {
    status.message = format!("Hello, {}!", this.spec.name);
    tracing::info!("{}", status.message);
}

fn operator() -> kopf::Operator {
    kopf::operator!("speed", [greet])
}

/// An operator with its own server, an object that is created and changed, four assertions.
#[kopf::test]
async fn greets_by_name(world: World) {
    let _operator = world.start(operator()).await;
    let greeting = Greeting::new("example", GreetingSpec { name: "World".into() });
    world.create(&greeting).await.expect("the server accepts it");
    world.settled().await;
    let seen: Greeting = world.get("example").await.expect("it was created");
    assert_eq!(seen.status.expect("it was handled").message, "Hello, World!");

    let change = json!({"spec": {"name": "you"}});
    world.patch::<Greeting>("example", &change).await.expect("the server accepts it");
    world.settled().await;
    let seen: Greeting = world.get("example").await.expect("it is still there");
    assert_eq!(seen.status.expect("it was handled").message, "Hello, you!");
}

/// A minimal test.
#[kopf::test]
async fn does_nothing(world: World) {
    world.settled().await;
}

fn timed(test: impl Fn()) -> Duration {
    let started = Instant::now();
    test();
    started.elapsed()
}

fn median_of(test: impl Fn()) -> Duration {
    let mut times: Vec<Duration> = (0..TESTS).map(|_| timed(&test)).collect();
    times.sort();
    times[TESTS / 2]
}

fn main() {
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    let first = timed(greets_by_name);
    let report = json!({
        "first_ms": milliseconds(first),
        "test_ms": milliseconds(median_of(greets_by_name)),
        "world_ms": milliseconds(median_of(does_nothing)),
    });
    println!("{report}");
}
