//! The real kubectl with the listener: what it waits for must happen.
//!
//! Skipped with a message if kubectl is not installed.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use kopf_apiserver::{PodSelector, Server, Stage};
use serde_json::{Value, json};

/// The timeout of one command.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);

struct Cluster {
    server: Server,
    _listening: kopf_apiserver::Listening,
    directory: tempfile::TempDir,
}

/// The result of a command.
struct Ran {
    is_success: bool,
    output: String,
}

impl Cluster {
    /// A cluster and a kubectl; `None` if kubectl is not installed.
    async fn new(server: Server) -> Option<Self> {
        let found = std::process::Command::new("kubectl")
            .args(["version", "--client"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if !found.is_ok_and(|status| status.success()) {
            eprintln!("SKIPPED: there is no kubectl on this machine");
            return None;
        }
        let address = "127.0.0.1:0".parse().expect("an address");
        let listening = server.listen(address).await.expect("a free port");
        let directory = tempfile::tempdir().expect("a temporary directory");
        std::fs::write(directory.path().join("config"), listening.kubeconfig()).expect("a file");
        Some(Self { server, _listening: listening, directory })
    }

    fn file(&self, name: &str, object: &Value) -> PathBuf {
        let path = self.directory.path().join(name);
        std::fs::write(&path, object.to_string()).expect("a file");
        path
    }

    async fn kubectl(&self, arguments: &str) -> Ran {
        let mut command = tokio::process::Command::new("kubectl");
        command
            .env("KUBECONFIG", self.directory.path().join("config"))
            .env("HOME", self.directory.path())
            .args(arguments.split(' '))
            .kill_on_drop(true);
        let output = tokio::time::timeout(COMMAND_TIMEOUT, command.output())
            .await
            .unwrap_or_else(|_| panic!("kubectl {arguments} hangs"))
            .expect("kubectl starts");
        let text = [output.stdout, output.stderr].concat();
        Ran {
            is_success: output.status.success(),
            output: String::from_utf8_lossy(&text).into_owned(),
        }
    }

    async fn succeed(&self, arguments: &str) -> String {
        let ran = self.kubectl(arguments).await;
        assert!(ran.is_success, "kubectl {arguments}: {}", ran.output);
        ran.output
    }

    async fn apply(&self, name: &str, object: &Value) {
        let path = self.file(name, object);
        self.succeed(&format!("apply -f {}", path.display())).await;
    }
}

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": "web" },
        "spec": {
            "replicas": 3,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "c", "image": "nginx:1" }] },
            },
        },
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rollouts_finish_undo_and_scale() {
    let Some(cluster) = Cluster::new(Server::new()).await else { return };
    cluster.apply("web.json", &deployment()).await;
    let output = cluster.succeed("rollout status deployment/web --timeout=20s").await;
    assert!(output.contains("successfully rolled out"), "{output}");
    cluster.succeed("set image deployment/web c=nginx:2").await;
    cluster.succeed("rollout status deployment/web --timeout=20s").await;
    let output = cluster.succeed("rollout history deployment/web").await;
    assert!(output.contains("\n1 ") && output.contains("\n2 "), "{output}");
    cluster.succeed("rollout undo deployment/web").await;
    cluster.succeed("rollout status deployment/web --timeout=20s").await;
    let image = "get deployment web -o jsonpath={.spec.template.spec.containers[0].image}";
    assert_eq!(cluster.succeed(image).await, "nginx:1");
    cluster.succeed("rollout restart deployment/web").await;
    cluster.succeed("rollout status deployment/web --timeout=20s").await;
    cluster.succeed("scale deployment/web --replicas=5").await;
    cluster
        .succeed("wait deployment/web --for=jsonpath={.status.readyReplicas}=5 --timeout=20s")
        .await;
    cluster.succeed("wait deployment/web --for=condition=Available --timeout=20s").await;
    cluster.succeed("delete deployment web --cascade=foreground --timeout=20s").await;
    let output = cluster.succeed("get pods,replicasets,deployments").await;
    assert!(output.contains("No resources found"), "{output}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orphans_survive_and_stuck_rollouts_are_reported() {
    let server = Server::new();
    server.stage(PodSelector::any().label("app", "web"), Stage::never_ready().logs("hello\n"));
    let Some(cluster) = Cluster::new(server).await else { return };
    cluster.apply("web.json", &deployment()).await;
    let ran = cluster.kubectl("rollout status deployment/web --timeout=1s").await;
    assert!(!ran.is_success, "{}", ran.output);
    assert!(ran.output.contains("0 of 3 updated replicas are available"), "{}", ran.output);
    let output = cluster.succeed("logs deployment/web").await;
    assert!(output.contains("hello"), "{output}");
    cluster.server.clear_stages();
    cluster.succeed("rollout status deployment/web --timeout=20s").await;
    cluster.succeed("delete deployment web --cascade=orphan --timeout=20s").await;
    let output = cluster.succeed("get replicasets -o name").await;
    assert!(output.starts_with("replicaset.apps/web-"), "{output}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_pods_and_namespaces_can_be_waited_for() {
    let Some(cluster) = Cluster::new(Server::new()).await else { return };
    cluster.succeed("create namespace team").await;
    cluster.succeed("create job work --image=busybox -n team -- true").await;
    cluster.succeed("wait job/work --for=condition=Complete -n team --timeout=20s").await;
    cluster.succeed("run alone --image=nginx -n team").await;
    cluster.succeed("wait pod/alone --for=condition=Ready -n team --timeout=20s").await;
    cluster.succeed("expose pod alone --port=80 -n team").await;
    let path = "jsonpath={.spec.clusterIP}";
    assert!(
        cluster.succeed(&format!("get service alone -n team -o {path}")).await.starts_with("10.")
    );
    cluster.succeed("delete pod alone -n team --timeout=20s").await;
    cluster.succeed("delete namespace team --timeout=20s").await;
    let ran = cluster.kubectl("get namespace team").await;
    assert!(ran.output.contains("NotFound"), "{}", ran.output);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rights_can_be_asked_for() {
    let server = Server::builder().rbac(true).build();
    let Some(cluster) = Cluster::new(server).await else { return };
    assert_eq!(cluster.succeed("auth can-i delete pods").await.trim(), "yes");
    cluster.succeed("create serviceaccount bot").await;
    cluster
        .succeed("create rolebinding bots --clusterrole=view --serviceaccount=default:bot")
        .await;
    let bot = "--as=system:serviceaccount:default:bot";
    assert_eq!(cluster.succeed(&format!("auth can-i list pods {bot}")).await.trim(), "yes");
    let ran = cluster.kubectl(&format!("auth can-i list secrets {bot}")).await;
    assert_eq!(ran.output.trim(), "no");
    let output = cluster.succeed(&format!("auth can-i --list {bot}")).await;
    assert!(output.contains("selfsubjectaccessreviews"), "{output}");
    let token = cluster.succeed("create token bot").await;
    let ran = cluster.kubectl(&format!("get pods --token={}", token.trim())).await;
    assert!(ran.output.contains("No resources found"), "{}", ran.output);
    let ran = cluster.kubectl(&format!("get secrets --token={}", token.trim())).await;
    assert!(ran.output.contains("cannot list resource \"secrets\""), "{}", ran.output);
}

#[tokio::test]
async fn client_side_apply_can_be_followed_by_server_side_apply() {
    let server = Server::builder().build();
    let Some(cluster) = Cluster::new(server).await else { return };
    let mut object = json!({ "apiVersion": "v1", "kind": "ConfigMap",
                             "metadata": { "name": "c", "namespace": "default" },
                             "data": { "x": "1", "y": "<&>" } });
    cluster.apply("c.json", &object).await;
    object["data"]["x"] = "2".into();
    let file = cluster.file("c.json", &object);
    let other = format!("apply --server-side --field-manager other -f {}", file.display());
    let refused = cluster.kubectl(&other).await;
    assert!(
        refused.output.contains("conflict with \"kubectl-client-side-apply\" using v1: .data.x")
    );
    let applied = cluster.succeed(&format!("apply --server-side -f {}", file.display())).await;
    assert_eq!(applied, "configmap/c serverside-applied\n");
    let shown = cluster.succeed("get cm c -o json --show-managed-fields").await;
    let shown: Value = serde_json::from_str(&shown).expect("JSON");
    assert_eq!(shown["data"], object["data"]);
    let note =
        &shown["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"];
    let noted: Value = serde_json::from_str(note.as_str().expect("a note")).expect("JSON");
    assert_eq!(noted, object);
    let managers: Vec<&Value> = shown["metadata"]["managedFields"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|entry| &entry["manager"])
        .collect();
    assert_eq!(managers, ["kubectl-last-applied", "kubectl"]);
    // And back.
    object["data"]["x"] = "3".into();
    cluster.apply("c.json", &object).await;
    assert_eq!(cluster.succeed("get cm c -o jsonpath={.data.x}").await, "3");
}
