//! What you learn: handlers that run before and after everything else, log in, and answer probes.
use std::time::Instant;

use kopf::Settings;
use kopf::login::{self, LoginResult};
use kopf::prelude::*;

struct Started(Instant);

#[kopf::on::startup(needs = ["create,patch events"])]
async fn configure(settings: &mut Settings) {
    settings.posting.handlers = true; // report successes and failures as Kubernetes events
    settings.execution.default_backoff = 10.secs();
    tracing::info!("the operator is starting");
}

#[kopf::on::login(retries = 3)]
async fn log_in() -> Result<LoginResult> {
    let token = "/var/run/secrets/kubernetes.io/serviceaccount/token";
    match std::path::Path::new(token).is_file() {
        true => login::with_service_account(),
        false => login::with_kubeconfig().await,
    }
}

#[kopf::on::probe(id = "uptime")]
async fn uptime(started: State<Started>) -> u64 {
    started.0.elapsed().as_secs()
}

#[kopf::on::cleanup]
async fn say_good_bye() {
    tracing::info!("the operator has stopped");
}

#[kopf::on::create("kopf.dev", "v1", "greetings")]
async fn create_fn() {}

pub fn operator() -> kopf::Operator {
    kopf::operator!("hooks", [configure, log_in, uptime, say_good_bye, create_fn])
        .state(Started(Instant::now()))
}

fn main() -> kopf::Exit {
    operator().main()
}
