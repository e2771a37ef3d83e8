//! Snapshot tests of all help screens.

use std::io::{BufRead as _, BufReader};

use expect_test::{Expect, expect};

use crate::screen::{command, screen};

#[track_caller]
fn check(arguments: &[&str], expected: Expect) {
    let folder = tempfile::tempdir().expect("the test can set this up");
    let output = command(folder.path()).args(arguments).output().expect("the test can set this up");
    expected.assert_eq(&screen(&output, folder.path()));
}

#[test]
fn the_command_introduces_itself() {
    check(
        &["--help"],
        expect![[r#"
        Write, run and debug Kubernetes operators, with an embedded cluster

        Usage: kopf <COMMAND>

        Commands:
          new          Create an operator project that compiles, runs and passes its tests right away
          dev          Run the operator of this project with an embedded cluster; rebuild and restart it on
                       every change
          explain      Explain what an operator did to an object, and what it is waiting for
          doctor       Check tools, project, cluster, permissions and webhooks
          ui           Open the web UI of a running operator
          manifests    Generate what to deploy: CRDs, minimal permissions, a Deployment; or a Helm chart, or
                       an OLM bundle
          plan         Show what the operator of this project would do about desired children, without doing
                       it
          describe     Show what the operator of this project reacts to
          cluster      Run a Kubernetes API server on this machine: no etcd, no containers, no waiting
          freeze       Pause the operators of a peering while you make changes by hand
          resume       End the pause of `kopf freeze`
          shards       Show which replica has which share of the objects
          sbom         Print a list of everything in the operator of this project (SBOM, CycloneDX)
          manual       Write the manual pages of all commands into a folder, such as ~/.local/share/man/man1
          completions  Print the completion script of a shell

        Options:
          -h, --help     Print help
          -V, --version  Print version

        The first five minutes:  kopf new hello && cd hello && kopf dev
        (exit code 0)
    "#]],
    );
}

#[test]
fn new_has_a_help_screen() {
    check(
        &["new", "--help"],
        expect![[r#"
        Create an operator project that compiles, runs and passes its tests right away

        Usage: kopf new [OPTIONS] <PATH>

        Arguments:
          <PATH>  The folder to create; its last part becomes the project's name

        Options:
              --kind <KIND>    The kind of your resource [default: Greeting]
              --group <GROUP>  The API group of your resource [default: example.com]
              --kopf <DIR>     Use the `kopf` crate from this folder instead of where this command came from
              --git <URL>      Use the `kopf` crate from this Git repository
              --rev <COMMIT>   The commit of that repository
          -h, --help           Print help
        (exit code 0)
    "#]],
    );
}

#[test]
fn dev_has_a_help_screen() {
    check(
        &["dev", "--help"],
        expect![[r#"
        Run the operator of this project with an embedded cluster; rebuild and restart it on every change

        Usage: kopf dev [OPTIONS] [-- <OPTION>...]

        Options:
              --kubeconfig <FILE>        Work with the cluster of this kubeconfig instead of an embedded one
              --install                  Install the operator's definitions also in the cluster of
                                         `--kubeconfig`
              --load <PATH>...           Manifests to load first: files or folders
              --write-kubeconfig <FILE>  Where to write the kubeconfig of the embedded cluster [default:
                                         kopf.kubeconfig]
              --port <N>                 The port of the embedded API server on loopback; 0 picks a free one
                                         [default: 0]
              --ui-port <N>              The port of the web UI on loopback; 0 picks a free one [default: 0]
              --no-ui                    Do not serve the web UI
              --plain                    Print plain lines, also on a terminal
          -h, --help                     Print help

        Project:
          -p, --package <NAME>  The package of the operator, in a workspace
              --bin <NAME>      The program of the operator, if the package has several
              --release         Build with optimizations

        Operator:
          [OPTION]...  Options of the operator's own `run` command, after `--`
        (exit code 0)
    "#]],
    );
}

#[test]
fn explain_has_a_help_screen() {
    check(
        &["explain", "--help"],
        expect![[r#"
        Explain what an operator did to an object, and what it is waiting for

        Usage: kopf explain [OPTIONS] <KIND/NAME>

        Arguments:
          <KIND/NAME>
                  The object, such as `database/orders`; the kind may be a plural or a short name too

        Options:
          -n, --namespace <NAME>
                  The namespace; by default that of the kubeconfig

              --context <NAME>
                  The context of the kubeconfig

              --operator <URL>
                  Where the running operator serves its probes; found through the kubeconfig by default

              --prefix <DOMAIN>
                  The prefix of the operator's annotations
                  
                  [default: kopf.zalando.org]

              --finalizer <NAME>
                  The operator's finalizer
                  
                  [default: kopf.zalando.org/KopfFinalizerMarker]

          -o, --output <OUTPUT>
                  How to show it; as JSON or YAML, the object and what the operator remembers of it

                  Possible values:
                  - table: For people
                  - json:  One JSON document
                  - yaml:  One YAML document
                  
                  [default: table]

          -h, --help
                  Print help (see a summary with '-h')
        (exit code 0)
    "#]],
    );
}

#[test]
fn manifests_has_a_help_screen() {
    check(
        &["manifests", "--help"],
        expect![[r#"
        Generate what to deploy: CRDs, minimal permissions, a Deployment; or a Helm chart, or an OLM bundle

        Usage: kopf manifests [OPTIONS] [OPTION]...

        Options:
          -h, --help  Print help

        Project:
          -p, --package <NAME>  The package of the operator, in a workspace
              --bin <NAME>      The program of the operator, if the package has several
              --release         Build with optimizations

        Operator:
          [OPTION]...  Options of the operator's own command; `-- --help` shows them
        (exit code 0)
    "#]],
    );
}

#[test]
fn cluster_has_a_help_screen() {
    check(
        &["cluster", "--help"],
        expect![[r#"
        Run a Kubernetes API server on this machine: no etcd, no containers, no waiting

        Usage: kopf cluster [OPTIONS]

        Options:
              --port <N>
                  The port on loopback; 0 picks a free one
                  
                  [default: 0]

              --kubeconfig <FILE>
                  Where to write the kubeconfig
                  
                  [default: kopf.kubeconfig]

              --load <PATH>...
                  Manifests to load before serving: files or folders

              --data-dir <DIR>
                  Keep the data in this folder; it survives restarts and crashes

              --no-nodes
                  Run without nodes: Pods stay pending

              --rbac
                  Enforce roles and bindings; without it everything is allowed

              --mutating-policies
                  Have MutatingAdmissionPolicies, which are off by default in this release

              --audit-log <FILE>
                  Append one line of JSON per request to this file

          -o, --output <OUTPUT>
                  How to print where the server is, once it is ready

                  Possible values:
                  - table: For people
                  - json:  One JSON document
                  - yaml:  One YAML document
                  
                  [default: table]

          -h, --help
                  Print help (see a summary with '-h')
        (exit code 0)
    "#]],
    );
}

#[test]
fn completions_are_for_every_shell() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let folder = tempfile::tempdir().expect("the test can set this up");
        let output = command(folder.path())
            .args(["completions", shell])
            .output()
            .expect("the test can set this up");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && text.contains("explain"), "{shell}: {text}");
    }
}

#[test]
fn freeze_has_a_help_screen() {
    check(
        &["freeze", "--help"],
        expect![[r#"
        Pause the operators of a peering while you make changes by hand

        Usage: kopf freeze [OPTIONS] --peering <NAME> --lifetime <SECONDS>

        Options:
          -P, --peering <NAME>      The name of the peering object
          -n, --namespace <NAME>    The namespace of the operators, or those of a pattern such as
                                    `team-*,!team-x`; repeatable
          -A, --all-namespaces      The operators of the whole cluster; also without `-n`
          -i, --id <NAME>           Whose record it is; by default `user@host`
              --context <NAME>      The context of the kubeconfig
          -p, --priority <NUMBER>   The priority; operators with a lower one pause [default: 100]
              --dev                 The priority of a developer, 666
          -t, --lifetime <SECONDS>  For how many seconds, unless `kopf resume` comes first
          -m, --message <TEXT>      A message; accepted for compatibility with Kopf, and ignored
          -h, --help                Print help
        (exit code 0)
    "#]],
    );
}

#[test]
fn resume_has_a_help_screen() {
    check(
        &["resume", "--help"],
        expect![[r#"
        End the pause of `kopf freeze`

        Usage: kopf resume [OPTIONS] --peering <NAME>

        Options:
          -P, --peering <NAME>    The name of the peering object
          -n, --namespace <NAME>  The namespace of the operators, or those of a pattern such as
                                  `team-*,!team-x`; repeatable
          -A, --all-namespaces    The operators of the whole cluster; also without `-n`
          -i, --id <NAME>         Whose record it is; by default `user@host`
              --context <NAME>    The context of the kubeconfig
          -h, --help              Print help
        (exit code 0)
    "#]],
    );
}

#[test]
fn cluster_prints_where_it_is_for_machines() {
    let folder = tempfile::tempdir().expect("the test can set this up");
    let mut cluster = command(folder.path())
        .args(["cluster", "--output", "json"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("the command starts");
    let lines = BufReader::new(cluster.stdout.take().expect("it is piped")).lines();
    let mut text = String::new();
    for line in lines.map_while(Result::ok) {
        text.push_str(&line);
        if line == "}" {
            break;
        }
    }
    cluster.kill().expect("it runs");
    cluster.wait().expect("it ends");
    let document: serde_json::Value = serde_json::from_str(&text).expect("one document");
    assert!(document["url"].as_str().is_some_and(|url| url.starts_with("https://127.0.0.1:")));
    let kubeconfig = document["kubeconfig"].as_str().expect("a path");
    assert!(std::path::Path::new(kubeconfig).is_file(), "{kubeconfig}");
}
