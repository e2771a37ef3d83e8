//! Every error is one screen: what, why, what to do; and never the exit code 0.

use std::net::TcpListener;
use std::path::Path;

use expect_test::{Expect, expect};
use kopf_apiserver::{Server, User};

use crate::screen::{command, screen};
use crate::tls::{Authority, kubeconfig};

#[track_caller]
fn check(folder: &Path, arguments: &[&str], expected: Expect) {
    let output = command(folder).args(arguments).output().expect("the test can set this up");
    assert!(!output.status.success());
    expected.assert_eq(&screen(&output, folder));
}

/// The same with a kubeconfig.
#[track_caller]
fn check_with(folder: &Path, path: &Path, arguments: &[&str], expected: Expect) {
    let output = command(folder)
        .env("KUBECONFIG", path)
        .args(arguments)
        .output()
        .expect("the test can set this up");
    assert!(!output.status.success());
    expected.assert_eq(&screen(&output, folder));
}

/// The same, while a server in this process responds.
async fn check_served(folder: &Path, path: &Path, arguments: &[&str], expected: Expect) {
    let mut command = command(folder);
    command.env("KUBECONFIG", path).args(arguments);
    let output = tokio::task::spawn_blocking(move || command.output())
        .await
        .expect("the test can set this up")
        .expect("the test can set this up");
    assert!(!output.status.success());
    expected.assert_eq(&screen(&output, folder));
}

#[test]
fn wrong_words_are_corrected() {
    let folder = tempfile::tempdir().expect("the test can set this up");
    check(
        folder.path(),
        &["explane"],
        expect![[r#"
        error: unrecognized subcommand 'explane'

          tip: some similar subcommands exist: 'plan', 'explain'

        Usage: kopf <COMMAND>

        For more information, try '--help'.
        (exit code 2)
    "#]],
    );
    check(
        folder.path(),
        &["explain", "--namespac=x", "a/b"],
        expect![[r#"
        error: unexpected argument '--namespac' found

          tip: a similar argument exists: '--namespace'

        Usage: kopf explain --namespace <NAME> <KIND/NAME>

        For more information, try '--help'.
        (exit code 2)
    "#]],
    );
    check(
        folder.path(),
        &["explain", "orders"],
        expect![[r#"
        error: `orders` does not name an object
        hint: write it as KIND/NAME, such as `database/orders`
        (exit code 2)
    "#]],
    );
    check(
        folder.path(),
        &["explain", "a/b", "--operator=ftp://x"],
        expect![[r#"
        error: `ftp://x` does not begin with `http://`
        hint: give the address of the operator's probes, such as `http://127.0.0.1:PORT`
        (exit code 2)
    "#]],
    );
}

#[test]
fn a_missing_kubeconfig_is_reported() {
    let folder = tempfile::tempdir().expect("the test can set this up");
    check(
        folder.path(),
        &["explain", "a/b"],
        expect![[r#"
        error: no credentials were found: neither a kubeconfig nor a service account
        hint: set KUBECONFIG, or start a cluster with `kopf cluster`
        (exit code 1)
    "#]],
    );
    let missing = folder.path().join("none");
    check_with(
        folder.path(),
        &missing,
        &["explain", "a/b"],
        expect![[r#"
        error: could not use the credentials of the kubeconfig
          caused by: failed to read kubeconfig from '"FOLDER/none"': No such file or directory (os error 2)
        hint: check the file of KUBECONFIG and its context, or start a cluster with `kopf cluster`
        (exit code 1)
    "#]],
    );
    let empty = folder.path().join("empty.yaml");
    std::fs::write(&empty, "apiVersion: v1\nkind: Config\n").expect("the test can set this up");
    check_with(
        folder.path(),
        &empty,
        &["explain", "a/b"],
        expect![[r#"
        error: could not use the credentials of the kubeconfig
          caused by: failed to determine current context
        hint: check the file of KUBECONFIG and its context, or start a cluster with `kopf cluster`
        (exit code 1)
    "#]],
    );
}

#[test]
fn a_server_that_is_gone_is_reported() {
    let folder = tempfile::tempdir().expect("the test can set this up");
    // Bound and closed at once: a port where nothing listens.
    let address = TcpListener::bind("127.0.0.1:0")
        .expect("the test can set this up")
        .local_addr()
        .expect("the test can set this up");
    let path = kubeconfig(folder.path(), &format!("https://{address}"), None, "x");
    check_with(
        folder.path(),
        &path,
        &["explain", "a/b"],
        expect![[r#"
        error: could not reach the cluster at https://127.0.0.1:PORT
          caused by: GET /api failed: the connection failed
          caused by: no connection could be made
          caused by: tcp connect error
          caused by: Connection refused (os error 111)
        hint: nothing listens there: is the cluster of your kubeconfig running?
        (exit code 1)
    "#]],
    );
}

/// Replaces the seconds since 1970 and since the certificate's expiry with `MOMENT`.
fn without_moments(text: &str) -> String {
    let is_digit = |character: char| character.is_ascii_digit();
    let words = text.split_inclusive(' ').map(|word| {
        let number = word.trim_matches(|character| !is_digit(character));
        let is_moment = number.len() > 8 && number.chars().all(is_digit);
        if is_moment { word.replace(number, "MOMENT") } else { word.to_owned() }
    });
    words.collect()
}

#[test]
fn an_expired_certificate_is_reported() {
    let folder = tempfile::tempdir().expect("the test can set this up");
    let authority = Authority::new();
    let server = format!("https://{}", authority.serve_until(2020));
    let path = kubeconfig(folder.path(), &server, Some(&authority.pem), "x");
    let output = command(folder.path())
        .env("KUBECONFIG", path)
        .args(["explain", "a/b"])
        .output()
        .expect("the test can set this up");
    let text = screen(&output, folder.path());
    expect![[r#"
        error: could not reach the cluster at https://127.0.0.1:PORT
          caused by: GET /api failed: the connection failed
          caused by: no connection could be made
          caused by: invalid peer certificate: certificate expired: verification time MOMENT (UNIX), but certificate is not valid after MOMENT (MOMENT seconds ago)
        hint: a certificate has expired: renew it, and check the clock of this machine
        (exit code 1)
    "#]].assert_eq(&without_moments(&text));
}

#[test]
fn a_foreign_certificate_authority_is_reported() {
    let folder = tempfile::tempdir().expect("the test can set this up");
    let server = format!("https://{}", Authority::new().serve_until(2099));
    let path = kubeconfig(folder.path(), &server, Some(&Authority::new().pem), "x");
    check_with(
        folder.path(),
        &path,
        &["explain", "a/b"],
        expect![[r#"
        error: could not reach the cluster at https://127.0.0.1:PORT
          caused by: GET /api failed: the connection failed
          caused by: no connection could be made
          caused by: invalid peer certificate: BadSignature
        hint: the server is another one than the kubeconfig says: get a new kubeconfig
        (exit code 1)
    "#]],
    );
}

#[tokio::test]
async fn forbidden_verbs_are_named() {
    let folder = tempfile::tempdir().expect("the test can set this up");
    let server = Server::builder().rbac(true).build();
    server.add_token("guest", User::new("guest", ["system:authenticated"]));
    let listening = server
        .listen("127.0.0.1:0".parse().expect("the test can set this up"))
        .await
        .expect("the test can set this up");
    let text = listening.kubeconfig().replace(server.admin_token(), "guest");
    let path = folder.path().join("kubeconfig");
    std::fs::write(&path, text).expect("the test can set this up");
    check_served(folder.path(), &path, &["explain", "secret/password"], expect![[r#"
        error: could not read Secret default/password
          caused by: GET /api/v1/namespaces/default/secrets/password failed: secrets "password" is forbidden: User "guest" cannot get resource "secrets" in API group "" in the namespace "default"
        hint: your account may not `get` secrets; ask with `kubectl auth can-i get secrets`
        (exit code 1)
    "#]]).await;
    let text = listening.kubeconfig().replace(server.admin_token(), "wrong");
    std::fs::write(&path, text).expect("the test can set this up");
    check_served(
        folder.path(),
        &path,
        &["explain", "secret/password"],
        expect![[r#"
        error: the cluster at https://127.0.0.1:PORT rejected the request
          caused by: GET /api failed: Unauthorized
        hint: the server does not accept these credentials; log in again
        (exit code 1)
    "#]],
    )
    .await;
}

#[tokio::test]
async fn unknown_kinds_and_objects_are_reported() {
    let folder = tempfile::tempdir().expect("the test can set this up");
    let listening = Server::new()
        .listen("127.0.0.1:0".parse().expect("the test can set this up"))
        .await
        .expect("the test can set this up");
    let path = folder.path().join("kubeconfig");
    std::fs::write(&path, listening.kubeconfig()).expect("the test can set this up");
    check_served(
        folder.path(),
        &path,
        &["explain", "confgmap/x"],
        expect![[r#"
        error: the cluster has no kind `confgmap`
        hint: did you mean `configmap`?
        (exit code 2)
    "#]],
    )
    .await;
    check_served(
        folder.path(),
        &path,
        &["explain", "zebra/x"],
        expect![[r#"
        error: the cluster has no kind `zebra`
        hint: `kubectl api-resources` lists them; is the custom resource definition installed?
        (exit code 2)
    "#]],
    )
    .await;
    check_served(
        folder.path(),
        &path,
        &["explain", "cm/x", "-n", "prod"],
        expect![[r#"
        error: there is no ConfigMap prod/x
        hint: check the name and the namespace (`-n`)
        (exit code 1)
    "#]],
    )
    .await;
}

#[test]
fn a_port_that_is_taken_is_reported() {
    let folder = tempfile::tempdir().expect("the test can set this up");
    let other = TcpListener::bind("127.0.0.1:0").expect("the test can set this up");
    let port = other.local_addr().expect("the test can set this up").port().to_string();
    let output = command(folder.path())
        .args(["cluster", "--port", &port])
        .output()
        .expect("the test can set this up");
    let text = screen(&output, folder.path()).replace(&port, "PORT");
    expect![[r#"
        error: could not listen on 127.0.0.1:PORT
          caused by: Address already in use (os error 98)
        hint: port PORT is in use: stop the other program, or leave `--port` out
        (exit code 1)
    "#]]
    .assert_eq(&text);
    assert!(!folder.path().join("kopf.kubeconfig").exists(), "nothing is half-written");
}

#[test]
fn broken_manifests_are_reported_with_their_location() {
    let folder = tempfile::tempdir().expect("the test can set this up");
    check(
        folder.path(),
        &["cluster", "--load", "nowhere.yaml"],
        expect![[r#"
        error: could not read `nowhere.yaml`
          caused by: No such file or directory (os error 2)
        hint: check the path that you gave with `--load`
        (exit code 2)
    "#]],
    );
    std::fs::write(folder.path().join("bad.yaml"), "a: 1\nb: [\n")
        .expect("the test can set this up");
    check(
        folder.path(),
        &["cluster", "--load", "bad.yaml"],
        expect![[r#"
        error: `bad.yaml` is not valid YAML
          caused by: did not find expected node content at line 3 column 1, while parsing a flow node
        hint: nothing was started; correct the manifest and try again
        (exit code 2)
    "#]],
    );
    std::fs::write(folder.path().join("odd.yaml"), "kind: Pod\n")
        .expect("the test can set this up");
    check(
        folder.path(),
        &["cluster", "--load", "odd.yaml"],
        expect![[r#"
        error: document 1 of `odd.yaml` has no `apiVersion`
        hint: nothing was started; correct the manifest and try again
        (exit code 2)
    "#]],
    );
    let unknown = "apiVersion: example.com/v1\nkind: Zebra\nmetadata: {name: a}\n";
    std::fs::write(folder.path().join("zebra.yaml"), unknown).expect("the test can set this up");
    check(
        folder.path(),
        &["cluster", "--load", "zebra.yaml"],
        expect![[r#"
        error: document 1 of `zebra.yaml`: the cluster has no kind `Zebra` in `example.com/v1`
        hint: load its CustomResourceDefinition too, and check `apiVersion` and `kind`
        (exit code 2)
    "#]],
    );
    let invalid = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n\
                   spec: {replicas: many, selector: {}, template: {}}\n";
    std::fs::write(folder.path().join("invalid.yaml"), invalid).expect("the test can set this up");
    check(
        folder.path(),
        &["cluster", "--load", "invalid.yaml"],
        expect![[r#"
        error: could not apply document 1 of `invalid.yaml`
          caused by: failed to create typed patch object (/a; apps/v1, Kind=Deployment): .spec.replicas: expected numeric (int or float), got string
        hint: correct the manifest and try again
        (exit code 2)
    "#]],
    );
    assert!(!folder.path().join("kopf.kubeconfig").exists(), "nothing is half-written");
    let unwritable = ["cluster", "--kubeconfig", "no/such/folder/kubeconfig"];
    check(
        folder.path(),
        &unwritable,
        expect![[r#"
        error: could not write the kubeconfig `no/such/folder/kubeconfig`
          caused by: No such file or directory (os error 2)
        hint: give a writable path with `--kubeconfig`
        (exit code 2)
    "#]],
    );
}

#[test]
fn commands_of_operators_need_a_project() {
    let folder = tempfile::tempdir().expect("the test can set this up");
    check(
        folder.path(),
        &["dev"],
        expect![[r#"
        error: there is no cargo project in `FOLDER`
        hint: go to the folder of an operator, or create one with `kopf new`
        (exit code 2)
    "#]],
    );
    for arguments in [&["manifests", "--image", "x"][..], &["plan"], &["describe", "--json"]] {
        check(
            folder.path(),
            arguments,
            expect![[r#"
            error: there is no cargo project in `FOLDER`
            hint: go to the folder of an operator, or create one with `kopf new`
            (exit code 2)
        "#]],
        );
    }
    std::fs::write(folder.path().join("Cargo.toml"), "[package\n")
        .expect("the test can set this up");
    let output = command(folder.path()).arg("dev").output().expect("the test can set this up");
    let text = screen(&output, folder.path());
    assert!(text.starts_with("error: cargo cannot read `FOLDER/Cargo.toml`\n"), "{text}");
    assert!(text.contains("hint: fix the Cargo.toml"), "{text}");
}
