//! Built-in admission that rejects or changes pods: limits, quotas, security, priorities; and the
//! controllers that report on them.

use std::time::Duration;

use http_body_util::{BodyExt, Full};
use kopf_apiserver::{LocalClient, ManualClock, Patch, Server, StatusError, Target};
use serde_json::{Value, json};
use tower::ServiceExt;

struct World {
    server: Server,
    client: LocalClient,
    clock: ManualClock,
}

impl World {
    async fn new() -> Self {
        let clock = ManualClock::new("2026-11-15T12:00:30Z".parse().unwrap());
        let server = Server::builder().clock(clock.clone()).build();
        let client = server.local();
        let world = Self { server, client, clock };
        let namespace = json!({"metadata": {"name": "ns"}});
        world.client.create("namespaces", "", namespace).await.unwrap();
        world.server.settle().await;
        world
    }

    async fn try_create(&self, table: &str, object: Value) -> Result<Value, StatusError> {
        let created = self.client.create(table, "ns", object).await?.value().clone();
        self.server.settle().await;
        Ok(created)
    }

    async fn create(&self, table: &str, object: Value) -> Value {
        let created = self.try_create(table, object).await;
        created.unwrap_or_else(|error| panic!("create in {table}: {error}"))
    }

    async fn read(&self, table: &str, name: &str) -> Value {
        self.client.get(Target::new(table, "ns", name)).await.unwrap().value().clone()
    }

    async fn names(&self, table: &str) -> Vec<String> {
        let all = self.client.list(table, "ns").await;
        all.iter().map(|stored| stored.name().to_owned()).collect()
    }

    /// Sends a request; returns status, body and warnings.
    async fn send(&self, method: &str, path: &str, body: Value) -> (u16, Value, Vec<String>) {
        let kind = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", kind)
            .body(Full::new(bytes::Bytes::from(body.to_string())))
            .unwrap();
        let response = self.server.service().oneshot(request).await.unwrap();
        let warnings = response.headers().get_all("warning").iter();
        let warnings = warnings.map(|value| value.to_str().unwrap().to_owned()).collect();
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        self.server.settle().await;
        (status, serde_json::from_slice(&bytes).unwrap_or_default(), warnings)
    }
}

fn pod(name: &str, resources: Value) -> Value {
    json!({"metadata": {"name": name, "labels": {"app": "a"}},
           "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]}})
}

#[tokio::test]
async fn limit_ranges_fill_in_defaults_and_refuse_what_is_beyond() {
    let world = World::new().await;
    world
        .create(
            "limitranges",
            json!({"metadata": {"name": "l"}, "spec": {"limits": [
                {"type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "100m"},
                 "max": {"cpu": "1"}, "min": {"cpu": "50m"}},
            ]}}),
        )
        .await;
    let created = world.create("pods", pod("plain", json!({}))).await;
    assert_eq!(
        created["spec"]["containers"][0]["resources"],
        json!({"requests": {"cpu": "100m"}, "limits": {"cpu": "500m"}})
    );
    assert_eq!(
        created["metadata"]["annotations"]["kubernetes.io/limit-ranger"],
        "LimitRanger plugin set: cpu request for container c; cpu limit for container c"
    );
    let large = pod("large", json!({"limits": {"cpu": "2"}, "requests": {"cpu": "10m"}}));
    let refused = world.try_create("pods", large).await.unwrap_err();
    assert_eq!(refused.code, 403);
    assert_eq!(
        refused.message,
        "pods \"large\" is forbidden: [minimum cpu usage per Container is 50m, but request is 10m, \
         maximum cpu usage per Container is 1, but limit is 2]"
    );
}

#[tokio::test]
async fn quotas_count_objects_and_amounts() {
    let world = World::new().await;
    world
        .create(
            "resourcequotas",
            json!({"metadata": {"name": "q"}, "spec": {"hard":
        {"pods": "2", "requests.cpu": "1", "count/configmaps": "2"}}}),
        )
        .await;
    let refused = world.try_create("pods", pod("silent", json!({}))).await.unwrap_err();
    assert_eq!(
        refused.message,
        "pods \"silent\" is forbidden: failed quota: q: must specify requests.cpu for: c"
    );
    let cpu = |amount: &str| json!({"requests": {"cpu": amount}});
    world.create("pods", pod("a", cpu("600m"))).await;
    let refused = world.try_create("pods", pod("b", cpu("500m"))).await.unwrap_err();
    assert_eq!(
        refused.message,
        "pods \"b\" is forbidden: exceeded quota: q, requested: requests.cpu=500m, used: \
         requests.cpu=600m, limited: requests.cpu=1"
    );
    world.create("pods", pod("b", cpu("400m"))).await;
    // The root certificate is also a ConfigMap.
    world.create("configmaps", json!({"metadata": {"name": "one"}})).await;
    let refused =
        world.try_create("configmaps", json!({"metadata": {"name": "two"}})).await.unwrap_err();
    assert_eq!(
        refused.message,
        "configmaps \"two\" is forbidden: exceeded quota: q, requested: count/configmaps=1, used: \
         count/configmaps=2, limited: count/configmaps=2"
    );
    let status = world.read("resourcequotas", "q").await["status"].clone();
    assert_eq!(status["used"], json!({"pods": "2", "requests.cpu": "1", "count/configmaps": "2"}));
    world.client.delete(Target::new("configmaps", "ns", "one"), Default::default()).await.unwrap();
    world.server.settle().await;
    let used = world.read("resourcequotas", "q").await["status"]["used"].clone();
    assert_eq!(used["count/configmaps"], "1");
    world.create("configmaps", json!({"metadata": {"name": "two"}})).await;
}

#[tokio::test]
async fn pod_security_labels_refuse_and_warn() {
    let world = World::new().await;
    let path = "/api/v1/namespaces/ns";
    let label = |mode: &str, level: &str| json!({"metadata": {"labels": {format!("pod-security.kubernetes.io/{mode}"): level}}});
    let (status, body, _) = world.send("PATCH", path, label("enforce", "strict")).await;
    assert_eq!(status, 422, "{body}");
    world.create("pods", pod("old", json!({}))).await;
    let (status, _, warnings) = world.send("PATCH", path, label("enforce", "restricted")).await;
    assert_eq!(status, 200);
    assert_eq!(
        warnings,
        [
            "299 - \"existing pods in namespace \\\"ns\\\" violate the new PodSecurity enforce level \
             \\\"restricted:latest\\\"\"",
            "299 - \"old: allowPrivilegeEscalation != false, unrestricted capabilities, runAsNonRoot \
             != true, seccompProfile\"",
        ]
    );
    let refused = world.try_create("pods", pod("p", json!({}))).await.unwrap_err();
    assert_eq!(
        refused.message,
        "pods \"p\" is forbidden: violates PodSecurity \"restricted:latest\": \
         allowPrivilegeEscalation != false (container \"c\" must set \
         securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container \
         \"c\" must set securityContext.capabilities.drop=[\"ALL\"]), runAsNonRoot != true (pod or \
         container \"c\" must set securityContext.runAsNonRoot=true), seccompProfile (pod or \
         container \"c\" must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \
         \"Localhost\")"
    );
    let mut good = pod("good", json!({}));
    good["spec"]["securityContext"] =
        json!({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}});
    good["spec"]["containers"][0]["securityContext"] =
        json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
    world.create("pods", good).await;
    let mut labels = label("enforce", "baseline");
    labels["metadata"]["labels"]["pod-security.kubernetes.io/warn"] = json!("baseline");
    world.send("PATCH", path, labels).await;
    let mut host = pod("host", json!({}));
    host["spec"]["hostNetwork"] = json!(true);
    host["spec"]["containers"][0]["securityContext"] = json!({"privileged": true});
    let refused = world.try_create("pods", host.clone()).await.unwrap_err();
    assert!(
        refused.message.ends_with(
            "violates PodSecurity \"baseline:latest\": host namespaces (hostNetwork=true), \
             privileged (container \"c\" must not set securityContext.privileged=true)"
        ),
        "{}",
        refused.message
    );
    let deployment = json!({"metadata": {"name": "d"}, "spec": {
        "selector": {"matchLabels": {"app": "a"}}, "template": host}});
    let path = "/apis/apps/v1/namespaces/ns/deployments";
    let (status, body, warnings) = world.send("POST", path, deployment).await;
    assert_eq!(status, 201, "{body}");
    assert!(
        warnings[0].contains("would violate PodSecurity \\\"baseline:latest\\\""),
        "{warnings:?}"
    );
}

#[tokio::test]
async fn priority_classes_have_to_exist() {
    let world = World::new().await;
    let with = |class: &str| {
        let mut pod = pod("p", json!({}));
        pod["spec"]["priorityClassName"] = json!(class);
        pod
    };
    let refused = world.try_create("pods", with("none")).await.unwrap_err();
    assert_eq!(refused.code, 403);
    assert_eq!(
        refused.message,
        "pods \"p\" is forbidden: no PriorityClass with name none was found"
    );
    let created = world.create("pods", with("system-cluster-critical")).await;
    assert_eq!(created["spec"]["priority"], 2_000_000_000);
}

#[tokio::test]
async fn budgets_report_and_evictions_keep_to_them() {
    let world = World::new().await;
    world
        .create(
            "poddisruptionbudgets.policy",
            json!({"metadata": {"name": "b"}, "spec": {
        "minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}}),
        )
        .await;
    for name in ["one", "two"] {
        world.create("pods", pod(name, json!({}))).await;
    }
    let status = world.read("poddisruptionbudgets.policy", "b").await["status"].clone();
    assert_eq!(
        (&status["expectedPods"], &status["currentHealthy"], &status["desiredHealthy"]),
        (&json!(2), &json!(2), &json!(1))
    );
    assert_eq!(status["disruptionsAllowed"], 1);
    assert_eq!(status["conditions"][0]["reason"], "SufficientPods");
    let evict = |name: &str| {
        let path = format!("/api/v1/namespaces/ns/pods/{name}/eviction");
        let body = json!({"apiVersion": "policy/v1", "kind": "Eviction",
            "metadata": {"name": name}});
        let world = &world;
        async move { world.send("POST", &path, body).await }
    };
    assert_eq!(evict("one").await.0, 201);
    let (status, body, _) = evict("two").await;
    assert_eq!(status, 429);
    assert_eq!(
        body["details"]["causes"][0]["message"],
        "The disruption budget b needs 1 healthy pods and has 1 currently"
    );
}

#[tokio::test]
async fn cron_jobs_start_jobs_on_time() {
    let world = World::new().await;
    let template = json!({"spec": {"template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}});
    world
        .create(
            "cronjobs.batch",
            json!({"metadata": {"name": "tick"}, "spec": {
        "schedule": "*/5 * * * *", "jobTemplate": template}}),
        )
        .await;
    assert!(world.names("jobs.batch").await.is_empty(), "nothing is due yet");
    world.clock.advance(Duration::from_secs(5 * 60));
    world.server.settle().await;
    let jobs = world.names("jobs.batch").await;
    assert_eq!(jobs.len(), 1);
    let job = world.read("jobs.batch", &jobs[0]).await;
    assert_eq!(job["metadata"]["ownerReferences"][0]["kind"], "CronJob");
    assert_eq!(
        job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"],
        "2026-11-15T12:05:00Z"
    );
    let status = world.read("cronjobs.batch", "tick").await["status"].clone();
    assert_eq!(status["lastScheduleTime"], "2026-11-15T12:05:00Z");
    for _ in 0..6 {
        world.clock.advance(Duration::from_secs(5 * 60));
        world.server.settle().await;
    }
    assert!(world.names("jobs.batch").await.len() <= 4, "three that are done, and one at work");
    let suspended = Patch::Merge(json!({"spec": {"suspend": true}}));
    world.client.patch(Target::new("cronjobs.batch", "ns", "tick"), suspended).await.unwrap();
    let before = world.read("cronjobs.batch", "tick").await["status"]["lastScheduleTime"].clone();
    world.clock.advance(Duration::from_secs(3600));
    world.server.settle().await;
    let after = world.read("cronjobs.batch", "tick").await["status"]["lastScheduleTime"].clone();
    assert_eq!(before, after);
}

#[tokio::test]
async fn replication_controllers_keep_their_pods() {
    let world = World::new().await;
    let template = json!({"metadata": {"labels": {"app": "r"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    world
        .create(
            "replicationcontrollers",
            json!({"metadata": {"name": "r"}, "spec": {
        "replicas": 2, "selector": {"app": "r"}, "template": template}}),
        )
        .await;
    assert_eq!(world.names("pods").await.len(), 2);
    let status = world.read("replicationcontrollers", "r").await["status"].clone();
    assert_eq!((&status["replicas"], &status["readyReplicas"]), (&json!(2), &json!(2)));
    let smaller = Patch::Merge(json!({"spec": {"replicas": 1}}));
    world.client.patch(Target::new("replicationcontrollers", "ns", "r"), smaller).await.unwrap();
    world.server.settle().await;
    assert_eq!(world.names("pods").await.len(), 1);
}

#[tokio::test]
async fn connecting_to_pods_is_rejected_with_a_reason() {
    let world = World::new().await;
    world.create("pods", pod("p", json!({}))).await;
    let path =
        |name: &str| format!("/api/v1/namespaces/ns/pods/{name}/exec?command=ls&container=c");
    let (status, body, _) = world.send("POST", &path("p"), json!({})).await;
    assert_eq!(status, 501);
    assert!(body["message"].as_str().unwrap().contains("its pods run no processes"), "{body}");
    assert_eq!(world.send("POST", &path("none"), json!({})).await.0, 404);
}

#[tokio::test]
async fn a_new_world_has_what_clusters_have() {
    let world = World::new().await;
    let service = world.client.get(Target::new("services", "default", "kubernetes")).await.unwrap();
    assert_eq!(service.value()["spec"]["clusterIP"], "10.96.0.1");
    let apis = world.client.list("apiservices.apiregistration.k8s.io", "").await;
    assert!(apis.iter().any(|api| api.name() == "v1.apps"));
    let reader = Target::new(
        "roles.rbac.authorization.k8s.io",
        "kube-system",
        "extension-apiserver-authentication-reader",
    );
    world.client.get(reader).await.unwrap();
    for name in ["system:auth-delegator", "system:monitoring"] {
        let role = Target::new("clusterroles.rbac.authorization.k8s.io", "", name);
        world.client.get(role).await.unwrap();
    }
}

#[tokio::test]
async fn policies_are_warned_of_fields_that_do_not_exist() {
    let world = World::new().await;
    let rules = json!([{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["*"],
        "resources": ["deployments"]}]);
    let table = "validatingadmissionpolicies.admissionregistration.k8s.io";
    world
        .client
        .create(
            table,
            "",
            json!({"metadata": {"name": "p"}, "spec": {
            "matchConstraints": {"resourceRules": rules},
            "validations": [
                {"expression": "object.spec.replicas <= 5 && has(object.metadata.labels)"},
                {"expression": "object.spec.replicass <= 5"},
            ]}}),
        )
        .await
        .unwrap();
    world.server.settle().await;
    let policy = world.client.get(Target::new(table, "", "p")).await.unwrap();
    let status = &policy.value()["status"];
    assert_eq!(status["observedGeneration"], 1);
    let warnings = status["typeChecking"]["expressionWarnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 1, "{status}");
    assert_eq!(warnings[0]["fieldRef"], "spec.validations[1].expression");
    assert_eq!(
        warnings[0]["warning"],
        "apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'replicass'\n | \
         object.spec.replicass <= 5\n | ...........^\n"
    );
}
