//! What you learn: how the web UI shows objects that are handled, retried, stuck or failed.
use kopf::Settings;
use kopf::children::Child;
use kopf::input::{New, Old};
use kopf::prelude::*;

/// The disks of the data centre, in gigabytes.
const FREE: u64 = 500;

/// Successes and failures become Kubernetes events.
#[kopf::on::startup(needs = ["create,patch events"])]
async fn configure(settings: &mut Settings) {
    settings.posting.handlers = true;
}

/// Creates the database, if there is enough space. dBase is not supported.
#[kopf::on::create("shop.dev", "v1", "databases")]
async fn provision(spec: &Spec, name: Name) -> Result<String> {
    let size = spec["size"].as_u64().unwrap_or(1);
    if size > FREE {
        let text = format!("{size} GB do not fit: {FREE} GB are free; waiting for new disks");
        return Err(kopf::temporary(text).retry_in(20.secs()));
    }
    match spec["engine"].as_str() {
        Some("postgres" | "redis") => Ok(format!("postgres://{name}.internal/db")),
        other => {
            let engine = other.unwrap_or("without a name");
            Err(kopf::permanent(format!("there is no engine {engine}")))
        }
    }
}

/// Restores a backup, which takes a long time.
#[kopf::on::create("shop.dev", "v1", "databases", field = "spec.restore")]
async fn restore() -> Result<String> {
    tokio::time::sleep(std::time::Duration::from_secs(3600)).await;
    Ok("restored".to_owned())
}

/// Gives the database more disk space.
#[kopf::on::update("shop.dev", "v1", "databases", field = "spec.size")]
async fn resize(old: Old<u64>, new: New<u64>) -> Result<String> {
    let (old, new) = (old.0.unwrap_or(0), new.0.unwrap_or(0));
    Ok(format!("resized from {old} to {new} GB"))
}

/// Notifies the people on call about live databases.
#[kopf::on::create("shop.dev", "v1", "databases", labels = {"tier": "live"})]
async fn page_on_call(name: Name) -> Result<String> {
    Ok(format!("watching {name}"))
}

/// Waits until the last connection to the database is closed.
#[kopf::on::delete("shop.dev", "v1", "databases")]
async fn drop_database(spec: &Spec) -> Result {
    match spec["connections"].as_u64().unwrap_or(0) {
        0 => Ok(()),
        open => Err(kopf::temporary(format!("{open} connections are open")).retry_in(15.secs())),
    }
}

/// Measures how full the database is.
#[kopf::on::timer("shop.dev", "v1", "databases", interval = "5s")]
async fn measure() -> Result {
    tokio::time::sleep(std::time::Duration::from_millis(12)).await;
    Ok(())
}

/// The parts of a website. The stage tells the embedded cluster how the Pods behave.
#[kopf::on::desired("shop.dev", "v1", "websites", children("deployments.apps", "services.v1"))]
fn website(spec: &Spec, name: Name) -> Result<Vec<Child>> {
    let labels = json!({"website": *name});
    let stage = spec["stage"].as_str().unwrap_or("running");
    let mut all = vec![json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "spec": {
            "replicas": spec["replicas"].as_u64().unwrap_or(1),
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels, "annotations": {"kopf.dev/stage": stage}},
                "spec": {"containers": [{"name": "web", "image": "nginx"}]},
            },
        },
    })];
    if let Some(port) = spec["port"].as_u64() {
        all.push(json!({
            "apiVersion": "v1", "kind": "Service",
            "spec": {"selector": labels, "ports": [{"port": port}]},
        }));
    }
    Ok(all.into_iter().map(Child::from).collect())
}

/// Watches orders without writing anything to them.
#[kopf::on::event("shop.dev", "v1", "orders")]
async fn audit() {}

pub fn operator() -> kopf::Operator {
    kopf::operator!(
        "shop",
        [
            configure,
            provision,
            restore,
            resize,
            page_on_call,
            drop_database,
            measure,
            website,
            audit
        ]
    )
}

fn main() -> kopf::Exit {
    operator().main()
}
