//! Tests of an operator's program: its screens, its errors, its exit codes.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use expect_test::{Expect, expect};

/// Runs the program in its own folder; returns the complete output and the exit code.
fn screen(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_example-kopfexample"))
        .args(arguments)
        .env_clear()
        .env("HOME", folder)
        .current_dir(folder)
        .output()
        .expect("the program runs");
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let code = output.status.code().map_or_else(|| "none".to_owned(), |code| code.to_string());
    let text = text.replace(&folder.display().to_string(), "FOLDER");
    // Ports and tokens differ between runs.
    let text = masked(&text, "127.0.0.1:", "PORT", |character| character.is_ascii_digit());
    let text = masked(&text, "#token=", "TOKEN", |character| character.is_ascii_hexdigit());
    let lines: String = text.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    format!("{lines}(exit code {code})\n")
}

/// Replaces the characters after a mark with a word.
fn masked(text: &str, mark: &str, word: &str, is_masked: fn(char) -> bool) -> String {
    let mut parts = text.split(mark);
    let mut clean = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        clean.push_str(mark);
        clean.push_str(word);
        clean.push_str(part.trim_start_matches(is_masked));
    }
    clean
}

#[track_caller]
fn check(arguments: &[&str], expected: Expect) {
    let folder = tempfile::tempdir().expect("a folder");
    expected.assert_eq(&screen(folder.path(), arguments));
    let left = std::fs::read_dir(folder.path()).expect("the folder is there").count();
    assert_eq!(left, 0, "nothing is half-written");
}

#[test]
fn it_introduces_itself() {
    check(
        &["--help"],
        expect![[r#"
        The Kubernetes operator `kopfexample`

        Usage: example-kopfexample <COMMAND>

        Commands:
          run        Watch the cluster and handle what happens there
          plan       Show what would be done about desired children, without doing it
          describe   Show what the operator reacts to
          manifests  Generate what to deploy: CRDs, minimal permissions, a Deployment; or a Helm chart, or
                     an OLM bundle

        Options:
          -h, --help     Print help
          -V, --version  Print version
        (exit code 0)
    "#]],
    );
}

#[test]
fn its_commands_have_help_screens() {
    check(
        &["run", "--help"],
        expect![[r#"
        Watch the cluster and handle what happens there

        Usage: example-kopfexample run [OPTIONS]

        Options:
          -A, --all-namespaces
                  Work in all namespaces
          -n, --namespace <NAME>
                  Work in this namespace, or in those of a pattern such as `team-*,!team-x`; repeatable
              --standalone
                  Ignore other operators of the same kind
              --dev
                  Run with the priority of a developer's machine, pausing the deployed operator
              --leader-elect[=<NAME>]
                  Act only while this replica leads; the others stand by. With the name of the Lease, which
                  is the operator's by default
              --shards <auto|N>
                  Share the objects with the other replicas, by this many ranges (`auto`: 64)
              --snapshot <FILE>
                  Remember in this file which objects are handled, so that a restart does not list them
          -L, --liveness <URL>
                  Serve probes here, such as `http://0.0.0.0:8080/healthz`
              --metrics <URL>
                  Serve metrics on this port instead, over TLS, such as `https://0.0.0.0:8443`, only to
                  clients that may `get` the path `/metrics` in the cluster
              --metrics-certificate <FILE>
                  The file of the certificate for metrics, read again when it is renewed; else self-signed
              --metrics-key <FILE>
                  The file of the key for metrics
              --allow-actions
                  Let people who reach the debug endpoint run objects again, retry, pause and resume them
              --webhook <ADDRESS>
                  Answer webhooks here, such as `0.0.0.0:9443`
              --webhook-service <NAMESPACE/NAME>
                  The service that leads the cluster to the webhooks
              --webhook-host <HOST>
                  The host name under which the cluster reaches the webhooks, when there is no service
              --webhook-certificate <FILE>
                  The file of the certificate for webhooks, read again when it is renewed; else self-signed
              --webhook-key <FILE>
                  The file of the key for webhooks
              --webhook-authority <FILE>
                  The file of the authority that issued the certificate, for the cluster to trust
          -P, --peering <NAME>
                  The peering object that coordinates operators of the same kind
          -p, --priority <N>
                  The priority among operators of the same kind; the highest one works
          -h, --help
                  Print help

        Logs:
          -v, --verbose              Log everything that happens to objects
          -d, --debug                Log everything, including libraries
          -q, --quiet                Log only warnings and errors
              --log-format <FORMAT>  How lines look: plain, full or json [default: full]
              --log-refkey <KEY>     The key of the object's reference in JSON lines [default: object]
              --log-prefix           Begin lines with `[namespace/name]`
              --no-log-prefix        Do not begin lines with `[namespace/name]`

        Without a cluster:
              --embedded           Run a Kubernetes API server in this process and work with it
              --load <PATH>...     Manifests to load first: files or folders
              --kubeconfig <FILE>  Where to write the kubeconfig for kubectl and other clients [default:
                                   kopf.kubeconfig]
              --port <N>           The port of the API server on loopback; 0 picks a free one [default: 0]
              --ui-port <N>        The port of the web UI on loopback; 0 picks a free one [default: 0]
              --no-ui              Do not serve the web UI
              --rbac               Enforce RBAC, with the operator as its own service account with exactly
                                   the generated roles
        (exit code 0)
    "#]],
    );
    check(
        &["plan", "--help"],
        expect![[r#"
        Show what would be done about desired children, without doing it

        Usage: example-kopfexample plan [OPTIONS]

        Options:
          -A, --all-namespaces
                  Work in all namespaces

          -n, --namespace <NAME>
                  Work in this namespace, or in those of a pattern such as `team-*,!team-x`; repeatable

          -h, --help
                  Print help (see a summary with '-h')

        Logs:
          -v, --verbose
                  Log everything that happens to objects

          -d, --debug
                  Log everything, including libraries

          -q, --quiet
                  Log only warnings and errors

              --log-format <FORMAT>
                  How lines look: plain, full or json

                  [default: full]

              --log-refkey <KEY>
                  The key of the object's reference in JSON lines

                  [default: object]

              --log-prefix
                  Begin lines with `[namespace/name]`

              --no-log-prefix
                  Do not begin lines with `[namespace/name]`

          -o, --output <FORM>
                  How to show it

                  Possible values:
                  - table: For people
                  - json:  One JSON document
                  - yaml:  One YAML document

                  [default: table]

        Without a cluster:
              --embedded
                  Run a Kubernetes API server in this process and work with it

              --load <PATH>...
                  Manifests to load first: files or folders

              --kubeconfig <FILE>
                  Where to write the kubeconfig for kubectl and other clients

                  [default: kopf.kubeconfig]

              --port <N>
                  The port of the API server on loopback; 0 picks a free one

                  [default: 0]

              --ui-port <N>
                  The port of the web UI on loopback; 0 picks a free one

                  [default: 0]

              --no-ui
                  Do not serve the web UI

              --rbac
                  Enforce RBAC, with the operator as its own service account with exactly the generated
                  roles
        (exit code 0)
    "#]],
    );
    check(
        &["manifests", "--help"],
        expect![[r#"
        Generate what to deploy: CRDs, minimal permissions, a Deployment; or a Helm chart, or an OLM bundle

        Usage: example-kopfexample manifests [OPTIONS] --image <IMAGE>

        Options:
              --image <IMAGE>
                  The container image of the operator

              --namespace <NAME>
                  The namespace that the operator lives in

                  [default: default]

              --serves <NAME>
                  Serve only this namespace, with privileges only there; repeatable

              --replicas <N>
                  How many replicas to run; with more than one, one leads and the others stand by

                  [default: 1]

              --shards
                  Let the replicas share the objects instead

          -o, --output <FOLDER>
                  Write the files into this folder, for `kubectl apply -k`, instead of printing them

              --format <FORMAT>
                  What to write: manifests for kubectl, a Helm chart, or a bundle for the Operator Lifecycle
                  Manager

                  Possible values:
                  - kubectl: Manifests and a kustomization
                  - helm:    A chart
                  - olm:     A bundle

                  [default: kubectl]

              --secure-metrics
                  Serve metrics over TLS, only to those who may `get` the path `/metrics`

              --metrics-from <NAME>
                  In the NetworkPolicy, allow only Pods of this namespace to read the metrics; repeatable

              --extras
                  Also a ServiceMonitor, alert rules, a Grafana dashboard and a NetworkPolicy

              --force
                  Overwrite files that were changed since they were generated

          -h, --help
                  Print help (see a summary with '-h')
        (exit code 0)
    "#]],
    );
}

#[test]
fn wrong_words_are_corrected() {
    check(
        &["run", "--namespac=x"],
        expect![[r#"
        error: unexpected argument '--namespac' found

          tip: a similar argument exists: '--namespace'

        Usage: example-kopfexample run --namespace <NAME>

        For more information, try '--help'.
        (exit code 2)
    "#]],
    );
    check(
        &["run", "--all-namespaces", "--namespace=x"],
        expect![[r#"
        error: the argument '--all-namespaces' cannot be used with '--namespace <NAME>'

        Usage: example-kopfexample run --all-namespaces

        For more information, try '--help'.
        (exit code 2)
    "#]],
    );
    check(
        &["run", "--log-format=xml"],
        expect![[r#"
        error: invalid value 'xml' for '--log-format <FORMAT>': the log format must be plain, full or json, not "xml"

        For more information, try '--help'.
        (exit code 2)
    "#]],
    );
    check(
        &["run", "--liveness=localhost"],
        expect![[r#"
        error: `localhost` is not an endpoint for probes: it does not begin with `http://`
        hint: write it as `http://0.0.0.0:8080/healthz`
        (exit code 2)
    "#]],
    );
    check(
        &["manifests"],
        expect![[r#"
        error: the following required arguments were not provided:
          --image <IMAGE>

        Usage: example-kopfexample manifests --image <IMAGE>

        For more information, try '--help'.
        (exit code 2)
    "#]],
    );
    check(
        &["manifests", "--image=x", "--serves=team-*"],
        expect![[r#"
        error: `team-*` is a pattern, not a namespace
        hint: privileges are granted in namespaces: name each with its own `--serves`
        (exit code 2)
    "#]],
    );
}

#[test]
fn missing_and_unreadable_kubeconfigs_are_reported() {
    check(
        &["run", "--quiet"],
        expect![[r#"
        error: the operator could not log in to the cluster
          caused by: no credentials were found: neither a kubeconfig nor a service account
        hint: set KUBECONFIG to a cluster that can be reached, or bring one along: `run --embedded`
        (exit code 1)
    "#]],
    );
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(".kube/config");
    std::fs::create_dir(folder.path().join(".kube")).expect("a folder");
    std::fs::write(&path, "clusters: [\n").expect("a file");
    expect![[r#"
        error: the operator could not log in to the cluster
          caused by: could not use the credentials of the kubeconfig
          caused by: failed to parse kubeconfig YAML: error: line 1 column 11: unclosed bracket '['
             --> <input>:1:11
              |
            1 | clusters: [
              |           ^ unclosed bracket '['
        hint: set KUBECONFIG to a cluster that can be reached, or bring one along: `run --embedded`
        (exit code 1)
    "#]]
    .assert_eq(&screen(folder.path(), &["run", "--quiet"]));
}

#[test]
fn broken_manifests_are_reported_with_their_location() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("bad.yaml"), "a: 1\nb: [\n").expect("a file");
    let text = screen(folder.path(), &["run", "--embedded", "--load", "bad.yaml"]);
    expect![[r#"
        error: `bad.yaml` is not valid YAML
          caused by: did not find expected node content at line 3 column 1, while parsing a flow node
        hint: nothing was started; correct the manifest and try again
        (exit code 2)
    "#]].assert_eq(&text);
    let zebra = "apiVersion: example.com/v1\nkind: Zebra\nmetadata: {name: a}\n";
    std::fs::write(folder.path().join("zebra.yaml"), zebra).expect("a file");
    let text = screen(folder.path(), &["run", "--embedded", "--load", "zebra.yaml"]);
    expect![[r#"
        error: document 1 of `zebra.yaml`: the cluster has no kind `Zebra` in `example.com/v1`
        hint: load its CustomResourceDefinition too, and check `apiVersion` and `kind`
        (exit code 2)
    "#]]
    .assert_eq(&text);
    assert!(!folder.path().join("kopf.kubeconfig").exists(), "nothing is half-written");
}

#[test]
fn ports_that_are_taken_are_reported() {
    let other = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = other.local_addr().expect("an address").port().to_string();
    let folder = tempfile::tempdir().expect("a folder");
    let told = |arguments: &[&str]| screen(folder.path(), arguments);
    expect![[r#"
        error: could not listen on 127.0.0.1:PORT
          caused by: Address already in use (os error 98)
        hint: leave `--port` out to take a free one
        (exit code 1)
    "#]]
    .assert_eq(&told(&["run", "--embedded", "--port", &port]));
    let url = format!("http://127.0.0.1:{port}/healthz");
    expect![[r#"
        A Kubernetes API server is ready at https://127.0.0.1:PORT. In another terminal:

            export KUBECONFIG=FOLDER/kopf.kubeconfig

        The web UI is at http://127.0.0.1:PORT/#token=TOKEN

        Press Ctrl-C to stop.
        error: could not start the probe server
          caused by: could not serve probes on 127.0.0.1:PORT
          caused by: Address already in use (os error 98)
        hint: choose another port with `--liveness`
        (exit code 1)
    "#]]
    .assert_eq(&told(&["run", "--quiet", "--embedded", "--liveness", &url]));
    assert!(!folder.path().join("kopf.kubeconfig").exists(), "nothing is half-written");
}

#[test]
fn folders_that_cannot_be_written_are_reported() {
    check(
        &["manifests", "--image=x", "--output=/dev/null/deploy"],
        expect![[r#"
        error: could not write into `/dev/null/deploy`: Not a directory (os error 20)
        hint: give a writable folder with `--output`
        (exit code 2)
    "#]],
    );
}

#[test]
fn plans_need_desired_children() {
    check(
        &["plan", "--embedded"],
        expect![[r#"
        error: the operator has no desired children to plan
        (exit code 2)
    "#]],
    );
}
