//! `kopf freeze` and `kopf resume` with a server: the effect on the peering objects.

use expect_test::{Expect, expect};
use kopf_core::definition;
use kopf_model::Selector;
use serde_json::{Value, json};

use crate::screen::Terminal;

const CLUSTER: &str = "/apis/kopf.dev/v1/clusterkopfpeerings";

fn in_namespace(namespace: &str) -> String {
    format!("/apis/kopf.dev/v1/namespaces/{namespace}/kopfpeerings")
}

/// Both resources, a cluster-scoped object, and one in each of these namespaces.
async fn with_peerings(namespaces: &[&str]) -> Terminal {
    let terminal = Terminal::new().await;
    for (plural, kind, scope) in [
        ("clusterkopfpeerings", "ClusterKopfPeering", "Cluster"),
        ("kopfpeerings", "KopfPeering", "Namespaced"),
    ] {
        let peerings = Selector::exact("kopf.dev", "v1", plural);
        let mut definition = definition::implied(&peerings).expect("a definition");
        definition["spec"]["scope"] = scope.into();
        definition["spec"]["names"] = json!({"plural": plural, "kind": kind});
        // As in Kopf's definitions, the status is not a subresource.
        definition["spec"]["versions"][0]["subresources"] = Value::Null;
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        terminal.create(definitions, &definition).await;
    }
    let object = |kind: &str| json!({"apiVersion": "kopf.dev/v1", "kind": kind, "metadata": {"name": "main"}});
    terminal.create(CLUSTER, &object("ClusterKopfPeering")).await;
    for namespace in namespaces {
        let body = json!({"metadata": {"name": namespace}});
        terminal.create("/api/v1/namespaces", &body).await;
        terminal.create(&in_namespace(namespace), &object("KopfPeering")).await;
    }
    terminal
}

async fn check(terminal: &Terminal, arguments: &[&str], expected: Expect) {
    expected.assert_eq(&terminal.run(arguments).await);
}

/// The records of a peering object, without their times.
async fn records(terminal: &Terminal, collection: &str) -> Value {
    let mut records = terminal.get(&format!("{collection}/main")).await["status"].take();
    for record in records.as_object_mut().into_iter().flat_map(|it| it.values_mut()) {
        assert!(record["lastseen"].take().is_string(), "{record}");
    }
    records
}

#[tokio::test]
async fn operators_of_the_cluster_are_paused_and_resumed() {
    let terminal = with_peerings(&[]).await;
    let freeze = ["freeze", "-P", "main", "-t", "60", "-i", "me@here", "-m", "a migration"];
    let expected = expect![[r#"
        ClusterKopfPeering main: operators of a priority below 100 pause for 60 s, or until `kopf resume`
        (exit code 0)
    "#]];
    check(&terminal, &freeze, expected).await;
    let record = json!({"me@here": {"priority": 100, "lifetime": 60, "lastseen": null}});
    assert_eq!(records(&terminal, CLUSTER).await, record);
    let expected = expect![[r#"
        ClusterKopfPeering main: the record of me@here is gone
        (exit code 0)
    "#]];
    check(&terminal, &["resume", "-P", "main", "-i", "me@here"], expected).await;
    assert_eq!(records(&terminal, CLUSTER).await, json!({}));
}

#[tokio::test]
async fn operators_of_some_namespaces_are_paused_alone() {
    let terminal = with_peerings(&["team-a", "team-b", "other"]).await;
    let arguments =
        ["freeze", "-P", "main", "-t", "5", "--dev", "-i", "me", "-n", "team-*,!team-b"];
    let expected = expect![[r#"
        KopfPeering team-a/main: operators of a priority below 666 pause for 5 s, or until `kopf resume`
        (exit code 0)
    "#]];
    check(&terminal, &arguments, expected).await;
    let record = json!({"me": {"priority": 666, "lifetime": 5, "lastseen": null}});
    assert_eq!(records(&terminal, &in_namespace("team-a")).await, record);
    for untouched in [&in_namespace("team-b"), &in_namespace("other"), CLUSTER] {
        assert_eq!(records(&terminal, untouched).await, Value::Null, "{untouched}");
    }
}

#[tokio::test]
async fn what_cannot_be_paused_is_reported() {
    let terminal = with_peerings(&["team-a"]).await;
    let expected = expect![[r#"
        error: there is no ClusterKopfPeering typo
        hint: check the name (`-P`) and the namespaces (`-n`); operators name theirs at start
        (exit code 1)
    "#]];
    check(&terminal, &["freeze", "-P", "typo", "-t", "5"], expected).await;
    let expected = expect![[r#"
        error: there is no KopfPeering main in elsewhere
        hint: check the name (`-P`) and the namespaces (`-n`); operators name theirs at start
        (exit code 1)
    "#]];
    check(&terminal, &["resume", "-P", "main", "-n", "elsewhere"], expected).await;
    let expected = expect![[r#"
        error: the cluster has no `clusterkopfpeerings`
        hint: install the peering definitions, such as those of `examples/19-peering`
        (exit code 1)
    "#]];
    let bare = Terminal::new().await;
    check(&bare, &["resume", "-P", "main"], expected).await;
}
