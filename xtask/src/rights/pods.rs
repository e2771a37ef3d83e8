//! Simulates the node of a control plane without nodes: Pods are bound, run, complete and are
//! removed.
//!
//! Follows the annotation `kopf.dev/stage` like the embedded cluster: `complete`, or
//! `crash,exit-code=N`. All other Pods run and are ready at once.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::http::{Client, Request, runtime};
use crate::kubeconfig::Endpoint;

const NODE: &str = "played";
const INTERVAL: Duration = Duration::from_millis(300);
/// How often the node sends a heartbeat; controllers wait for 40 s.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// A thread that simulates the node until it is dropped.
pub(super) struct Player {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Player {
    pub(super) fn start(kubeconfig: &Path) -> Result<Self> {
        let mut stage = Stage {
            runtime: runtime()?,
            client: Client::new(Endpoint::from_file(kubeconfig)?)?,
            beat_at: None,
        };
        stage.make("/api/v1/nodes", &json!({"kind": "Node", "metadata": {"name": NODE}}))?;
        stage.make("/api/v1/persistentvolumes", &volume())?;
        let is_over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                // The next iteration corrects errors of this one.
                if let Err(error) = stage.look() {
                    eprintln!("playing pods: {error:#}");
                }
                std::thread::sleep(INTERVAL);
            }
        });
        Ok(Self { is_over, thread: Some(thread) })
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The thread returns nothing.
            let _ = thread.join();
        }
    }
}

/// A volume for claims, since the cluster has no provisioner.
fn volume() -> Value {
    json!({
        "kind": "PersistentVolume", "metadata": {"name": NODE},
        "spec": {
            "capacity": {"storage": "100Gi"}, "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/tmp/kopf-played"}, "persistentVolumeReclaimPolicy": "Delete",
        },
    })
}

struct Stage {
    runtime: tokio::runtime::Runtime,
    client: Client,
    beat_at: Option<Instant>,
}

impl Stage {
    fn send(&mut self, method: &str, path: &str, body: Option<&Value>) -> Result<(u16, Value)> {
        let kind = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = Request {
            method: method.to_owned(),
            path: path.to_owned(),
            headers: vec![("content-type".to_owned(), kind.to_owned())],
            body: body.map(|body| body.to_string().into()),
        };
        let answer = self.runtime.block_on(self.client.send(&request))?;
        Ok((answer.status, serde_json::from_slice(&answer.body).unwrap_or_default()))
    }

    /// Creates an object if it does not exist yet.
    fn make(&mut self, path: &str, object: &Value) -> Result<()> {
        let (status, answer) = self.send("POST", path, Some(object))?;
        ensure!(matches!(status, 201 | 409), "could not create in {path}: {answer}");
        Ok(())
    }

    fn look(&mut self) -> Result<()> {
        if self.beat_at.is_none_or(|at| at.elapsed() > HEARTBEAT) {
            self.beat()?;
            self.beat_at = Some(Instant::now());
        }
        let (_, pods) = self.send("GET", "/api/v1/pods", None)?;
        for pod in pods["items"].as_array().context("there is no list of pods")? {
            self.play(pod)?;
        }
        Ok(())
    }

    fn beat(&mut self) -> Result<()> {
        let resources = json!({"cpu": "64", "memory": "256Gi", "pods": "1000"});
        let ready = json!({"type": "Ready", "status": "True", "reason": "Played",
            "lastHeartbeatTime": now(), "lastTransitionTime": now()});
        let status = json!({"status": {
            "conditions": [ready], "capacity": resources, "allocatable": resources,
        }});
        self.send("PATCH", &format!("/api/v1/nodes/{NODE}/status"), Some(&status))?;
        Ok(())
    }

    fn play(&mut self, pod: &Value) -> Result<()> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (namespace, name) =
            (text(&pod["metadata"]["namespace"]), text(&pod["metadata"]["name"]));
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
        if !pod["metadata"]["deletionTimestamp"].is_null() {
            self.send("DELETE", &path, Some(&json!({"gracePeriodSeconds": 0})))?;
            return Ok(());
        }
        if pod["spec"]["nodeName"].is_null() {
            let target = json!({"apiVersion": "v1", "kind": "Node", "name": NODE});
            let binding = json!({"kind": "Binding", "metadata": {"name": name}, "target": target});
            self.send("POST", &format!("{path}/binding"), Some(&binding))?;
        }
        let wanted = status_of(pod);
        if pod["status"]["phase"] != wanted["phase"] {
            let status = json!({"status": wanted});
            self.send("PATCH", &format!("{path}/status"), Some(&status))?;
        }
        Ok(())
    }
}

/// The status that a Pod should have.
fn status_of(pod: &Value) -> Value {
    let stage = pod["metadata"]["annotations"]["kopf.dev/stage"].as_str().unwrap_or_default();
    let code = stage.split_once("exit-code=").and_then(|(_, code)| code.parse::<i64>().ok());
    let (phase, state) = match stage.split(',').next().unwrap_or_default() {
        "complete" => ("Succeeded", json!({"terminated": {"exitCode": 0, "reason": "Completed"}})),
        "crash" => {
            let code = code.unwrap_or(1);
            ("Failed", json!({"terminated": {"exitCode": code, "reason": "Error"}}))
        }
        _ => ("Running", json!({"running": {"startedAt": now()}})),
    };
    let is_ready = phase == "Running";
    let containers = pod["spec"]["containers"].as_array().cloned().unwrap_or_default();
    let containers: Vec<Value> = containers
        .iter()
        .map(|container| {
            json!({
                "name": container["name"], "image": container["image"], "imageID": "",
                "ready": is_ready, "restartCount": 0, "state": state,
            })
        })
        .collect();
    let condition = |kind: &str, holds: bool| {
        let status = if holds { "True" } else { "False" };
        json!({"type": kind, "status": status, "lastTransitionTime": now()})
    };
    json!({
        "phase": phase,
        "startTime": now(),
        "conditions": [
            condition("PodScheduled", true), condition("Initialized", true),
            condition("ContainersReady", is_ready), condition("Ready", is_ready),
        ],
        "containerStatuses": containers,
    })
}

fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
