//! `kopf explain` with a real operator's objects: the output from the cluster alone, and with the
//! running operator.

use std::sync::Arc;
use std::time::Duration;

use expect_test::{Expect, expect};
use kopf_core::filter::MetaFilter;
use kopf_core::registry::Registry;
use kopf_core::{
    Call, Handler, HandlerError, HandlerKind, Invocation, Invoke, Output, Returned, definition,
};
use kopf_engine::{Engine, ProbesEndpoint, Running};
use kopf_model::Selector;
use serde_json::{Value, json};

use crate::screen::Terminal;

/// The timeout for an operator to reach a state.
const PATIENCE: Duration = Duration::from_secs(30);
const LAST_HANDLED: &str = "kopf.zalando.org/last-handled-configuration";

struct Function(fn(&Call) -> Returned);

impl Invoke for Function {
    fn invoke(&self, call: Call) -> Invocation {
        let function = self.0;
        Invocation::Future(Box::pin(async move { function(&call) }))
    }
}

fn databases() -> Selector {
    Selector::exact("example.com", "v1", "databases")
}

fn handler(id: &str, kind: HandlerKind, function: fn(&Call) -> Returned) -> Handler {
    Handler::new(id, kind, Arc::new(Function(function))).for_resources(databases())
}

fn not_yet(_call: &Call) -> Returned {
    let delay = Some(Duration::from_secs(600));
    Err(HandlerError::Temporary { message: "the cloud is not ready".into(), delay })
}

fn never(_call: &Call) -> Returned {
    Err(HandlerError::Permanent { message: "no such plan".into() })
}

/// A server, an operator that serves the namespace `default`, and the command of a user.
pub(crate) struct Scene {
    terminal: Terminal,
    pub(crate) operator: ProbesEndpoint,
    pub(crate) running: Running,
}

impl Scene {
    pub(crate) async fn new(handlers: Vec<Handler>) -> Self {
        let terminal = Terminal::new().await;
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let definition = definition::implied(&databases()).expect("a definition");
        terminal.create(definitions, &definition).await;
        let other = json!({"metadata": {"name": "other"}});
        terminal.create("/api/v1/namespaces", &other).await;
        let operator = ProbesEndpoint::on_loopback().expect("a free port");
        let engine = Engine::builder(Registry::from_iter(handlers));
        let engine = engine.client(terminal.client.clone()).namespaces(["default"]);
        let running = engine.probes(operator.clone()).build().start();
        running.settled().await;
        Self { terminal, operator, running }
    }

    async fn create(&self, namespace: &str) {
        let object = json!({
            "apiVersion": "example.com/v1", "kind": "Database",
            "metadata": {"name": "orders"}, "spec": {"size": 2},
        });
        let path = format!("/apis/example.com/v1/namespaces/{namespace}/databases");
        self.terminal.create(&path, &object).await;
    }

    async fn delete(&self) {
        let path = "/apis/example.com/v1/namespaces/default/databases/orders";
        let request = http::Request::delete(path).body(Vec::new()).expect("a request");
        self.terminal.client.request::<Value>(request).await.expect("it is deleted");
    }

    /// Waits until the stored object fulfils a condition.
    async fn until(&self, is_so: impl Fn(&Value) -> bool) {
        let path = "/apis/example.com/v1/namespaces/default/databases/orders";
        let seen = async {
            loop {
                if is_so(&self.terminal.get(path).await) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, seen).await.expect("the operator comes so far");
    }

    /// Checks the output with the running operator, and from the cluster alone.
    async fn check(self, namespace: &str, with_operator: Expect, alone: Expect) {
        let url = format!("http://{}", self.operator.address);
        with_operator.assert_eq(&self.explain(&["-n", namespace, "--operator", &url]).await);
        alone.assert_eq(&self.explain(&["-n", namespace]).await);
        self.running.abort();
    }

    /// Waits until the operator has noticed the object.
    async fn until_noticed(&self) {
        let url = format!("http://{}", self.operator.address);
        let noticed = async {
            while self.explain(&["--operator", &url]).await.contains("knows nothing") {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, noticed).await.expect("the operator watches it");
    }

    async fn explain(&self, arguments: &[&str]) -> String {
        let arguments = [&["explain", "database/orders"], arguments].concat();
        without_times(&self.terminal.run(&arguments).await)
    }
}

/// Replaces all digits of times.
fn without_times(text: &str) -> String {
    let clean = |word: &str| {
        let (time, rest) = match word.strip_suffix([',', ':']) {
            Some(time) => (time, &word[time.len()..]),
            None => (word, ""),
        };
        let is_time =
            time.matches(':').count() == 2 && time.starts_with(|it: char| it.is_ascii_digit());
        if is_time { format!("TIME{rest}") } else { word.to_owned() }
    };
    let line = |line: &str| {
        let mut words: Vec<String> = line.split(' ').map(clean).collect();
        for index in 1..words.len() {
            // `in 599 s`, `12 ms`
            if words[index] == "s," || words[index].starts_with("ms") {
                words[index - 1] = "N".into();
            }
        }
        words.join(" ")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n") + "\n"
}

fn has_record(id: &'static str) -> impl Fn(&Value) -> bool {
    move |object| object["metadata"]["annotations"][format!("kopf.zalando.org/{id}")].is_string()
}

#[tokio::test]
async fn waiting_for_a_retry_is_reported() {
    let scene = Scene::new(vec![handler("provision", HandlerKind::Create, not_yet)]).await;
    scene.create("default").await;
    scene.until(has_record("provision")).await;
    scene
        .check(
            "default",
            expect![[r#"
                Database default/orders
                  is being handled for the first time

                  handler provision (create)
                    waits for its next attempt in N s, at TIME, after 1 attempt
                    last error: the cloud is not ready

                  the operator at http://127.0.0.1:PORT says:
                    checks it again in N s, at TIME
                    provision waits for attempt 2, in N s, at TIME: the cloud is not ready

                  what happened, oldest first:
                    TIME  create: calls provision
                                + everything: {"spec":{"size":2}}
                    TIME  provision, attempt 1, N ms: failed, will be retried: the cloud is not ready
                    TIME  wrote metadata.annotations.kopf.zalando.org/provision
                (exit code 0)
            "#]],
            expect![[r#"
                Database default/orders
                  is being handled for the first time

                  handler provision (create)
                    waits for its next attempt in N s, at TIME, after 1 attempt
                    last error: the cloud is not ready
                (exit code 0)
            "#]],
        )
        .await;
}

#[tokio::test]
async fn a_permanent_failure_is_reported() {
    let scene = Scene::new(vec![handler("bill", HandlerKind::Create, never)]).await;
    scene.create("default").await;
    scene.until(|it| it["metadata"]["annotations"][LAST_HANDLED].is_string()).await;
    scene
        .check(
            "default",
            expect![[r#"
        Database default/orders
          is handled: nothing has changed since

          the operator at http://127.0.0.1:PORT says:
            is waiting for the next change
            bill failed permanently after 1 attempt: no such plan

          what happened, oldest first:
            TIME  create: calls bill
                        + everything: {"spec":{"size":2}}
            TIME  bill, attempt 1, N ms: failed permanently: no such plan
            TIME  wrote metadata.annotations.kopf.zalando.org/last-handled-configuration
        (exit code 0)
    "#]],
            expect![[r#"
                Database default/orders
                  is handled: nothing has changed since
                  hint: handlers that failed permanently count as done; their errors are in the operator's log
                (exit code 0)
            "#]],
        )
        .await;
}

#[tokio::test]
async fn a_permanent_failure_beside_an_open_handler_is_reported() {
    let handlers = vec![
        handler("bill", HandlerKind::Create, never),
        handler("grow", HandlerKind::Create, not_yet),
    ];
    let scene = Scene::new(handlers).await;
    scene.create("default").await;
    scene.until(has_record("grow")).await;
    scene.check("default", expect![[r#"
        Database default/orders
          is being handled for the first time

          handler bill (create)
            failed permanently after 1 attempt
            last error: no such plan

          handler grow (create)
            waits for its next attempt in N s, at TIME, after 1 attempt
            last error: the cloud is not ready

          the operator at http://127.0.0.1:PORT says:
            checks it again in N s, at TIME
            bill failed permanently after 1 attempt: no such plan
            grow waits for attempt 2, in N s, at TIME: the cloud is not ready

          what happened, oldest first:
            TIME  create: calls bill, grow
                        + everything: {"spec":{"size":2}}
            TIME  bill, attempt 1, N ms: failed permanently: no such plan
            TIME  grow, attempt 1, N ms: failed, will be retried: the cloud is not ready
            TIME  wrote metadata.annotations.kopf.zalando.org/bill, metadata.annotations.kopf.zalando.org/grow
        (exit code 0)
    "#]], expect![[r#"
        Database default/orders
          is being handled for the first time

          handler bill (create)
            failed permanently after 1 attempt
            last error: no such plan

          handler grow (create)
            waits for its next attempt in N s, at TIME, after 1 attempt
            last error: the cloud is not ready
        (exit code 0)
    "#]]).await;
}

#[tokio::test]
async fn an_object_that_no_filter_matches_is_reported() {
    let mut choosy = handler("provision", HandlerKind::Create, |_| Ok(Output::Nothing));
    choosy.filters.labels = vec![("tier".into(), MetaFilter::Equals("live".into()))];
    let scene = Scene::new(vec![choosy]).await;
    scene.create("default").await;
    scene.check("default", expect![[r#"
        Database default/orders
          was never handled by an operator
          hint: is an operator running, does it serve this namespace, do its filters match?

          the operator at http://127.0.0.1:PORT does not watch it, because it is not labelled tier=live
          hint: all its handlers for databases are only for such objects
        (exit code 0)
    "#]], expect![[r#"
        Database default/orders
          was never handled by an operator
          hint: is an operator running, does it serve this namespace, do its filters match?
        (exit code 0)
    "#]]).await;
}

#[tokio::test]
async fn a_deletion_that_is_held_is_reported() {
    let handlers = vec![
        handler("provision", HandlerKind::Create, |_| Ok(Output::Nothing)),
        handler("unprovision", HandlerKind::Delete { optional: false }, not_yet),
    ];
    let scene = Scene::new(handlers).await;
    scene.create("default").await;
    scene.until(|it| it["metadata"]["annotations"][LAST_HANDLED].is_string()).await;
    scene.delete().await;
    scene.until(has_record("unprovision")).await;
    scene
        .check(
            "default",
            expect![[r#"
                Database default/orders
                  deletion was requested at TIME, and it is held until its handlers are done

                  handler unprovision (delete)
                    waits for its next attempt in N s, at TIME, after 1 attempt
                    last error: the cloud is not ready

                  the operator at http://127.0.0.1:PORT says:
                    it is being deleted, and held by the operator's finalizer
                    checks it again in N s, at TIME
                    unprovision waits for attempt 2, in N s, at TIME: the cloud is not ready

                  what happened, oldest first:
                    TIME  create: calls provision
                                + everything: {"spec":{"size":2}}
                    TIME  wrote lists, such as finalizers
                    TIME  provision, attempt 1, N ms: succeeded
                    TIME  wrote metadata.annotations.kopf.zalando.org/last-handled-configuration
                    TIME  delete: calls unprovision
                    TIME  unprovision, attempt 1, N ms: failed, will be retried: the cloud is not ready
                    TIME  wrote metadata.annotations.kopf.zalando.org/unprovision
                (exit code 0)
            "#]],
            expect![[r#"
                Database default/orders
                  deletion was requested at TIME, and it is held until its handlers are done

                  handler unprovision (delete)
                    waits for its next attempt in N s, at TIME, after 1 attempt
                    last error: the cloud is not ready
                (exit code 0)
            "#]],
        )
        .await;
}

#[tokio::test]
async fn an_object_that_was_never_seen_is_reported() {
    let scene = Scene::new(vec![handler("provision", HandlerKind::Create, never)]).await;
    scene.create("other").await;
    scene
        .check(
            "other",
            expect![[r#"
        Database other/orders
          was never handled by an operator
          hint: is an operator running, does it serve this namespace, do its filters match?

          the operator at http://127.0.0.1:PORT does not watch it
          hint: it has no handlers for databases, or serves other namespaces
        (exit code 0)
    "#]],
            expect![[r#"
        Database other/orders
          was never handled by an operator
          hint: is an operator running, does it serve this namespace, do its filters match?
        (exit code 0)
    "#]],
        )
        .await;
}

#[tokio::test]
async fn a_handler_that_is_not_concerned_is_reported_with_the_reason() {
    let mut choosy = handler("provision", HandlerKind::Create, |_| Ok(Output::Nothing));
    choosy.filters.labels = vec![("tier".into(), MetaFilter::Equals("live".into()))];
    let mark = handler("mark", HandlerKind::Event, |_| Ok(Output::Nothing));
    let scene = Scene::new(vec![choosy, mark]).await;
    scene.create("default").await;
    scene.until_noticed().await;
    scene
        .check(
            "default",
            expect![[r#"
        Database default/orders
          was never handled by an operator
          hint: is an operator running, does it serve this namespace, do its filters match?

          the operator at http://127.0.0.1:PORT says:
            is waiting for the next change
            not called: provision, because the label tier is missing

          what happened, oldest first:
            TIME  mark, attempt 1, N ms: succeeded
        (exit code 0)
    "#]],
            expect![[r#"
        Database default/orders
          was never handled by an operator
          hint: is an operator running, does it serve this namespace, do its filters match?
        (exit code 0)
    "#]],
        )
        .await;
}
