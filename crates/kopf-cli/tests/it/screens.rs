//! All help screens, to the letter.

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
        Kubernetes operators in a few lines, with a cluster in your pocket

        Usage: kopf <COMMAND>

        Commands:
          new          Create an operator project that compiles, runs and tests at once
          dev          Run the operator of this project, and again after every change, on a cluster in this
                       process
          explain      Tell what an operator did to one object, and what it waits for
          doctor       Look at everything that has to work: tools, project, cluster, rights, webhooks
          ui           Open the web UI of a running operator
          manifests    Print what to deploy: definitions, least privileges, the operator of this project
          plan         Tell what the operator of this project would do about desired children, without doing
                       it
          describe     Tell what the operator of this project reacts to
          cluster      Run a Kubernetes API server on this machine: no etcd, no containers, no waiting
          freeze       Pause the operators of a peering, to do something by hand
          resume       End a pause of `kopf freeze`
          sbom         Print everything that is compiled into the operator of this project, as CycloneDX
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
        Create an operator project that compiles, runs and tests at once

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
        Run the operator of this project, and again after every change, on a cluster in this process

        Usage: kopf dev [OPTIONS] [-- <OPTION>...]

        Options:
              --kubeconfig <FILE>        Work with the cluster of this kubeconfig instead of an embedded one
              --install                  Install the operator's definitions also in the cluster of
                                         `--kubeconfig`
              --load <PATH>...           Manifests to load first: files or folders
              --write-kubeconfig <FILE>  Where to write the kubeconfig of the embedded cluster [default:
                                         kopf.kubeconfig]
              --port <N>                 The port of the embedded API server on loopback; 0 takes a free one
                                         [default: 0]
              --ui-port <N>              The port of the web UI on loopback; 0 takes a free one [default: 0]
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
        Tell what an operator did to one object, and what it waits for

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
                  Where the running operator serves its probes; by default as the kubeconfig tells

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
        Print what to deploy: definitions, least privileges, the operator of this project

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
              --port <N>           The port on loopback; 0 takes a free one [default: 0]
              --kubeconfig <FILE>  Where to write the kubeconfig [default: kopf.kubeconfig]
              --load <PATH>...     Manifests to load before serving: files or folders
              --data-dir <DIR>     Keep the world in this folder; it survives restarts and kills
              --no-nodes           Have no node: pods stay pending, as in a control plane alone
              --rbac               Enforce roles and bindings; without it everything is allowed
              --audit-log <FILE>   Append one line of JSON per request to this file
          -h, --help               Print help
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
        Pause the operators of a peering, to do something by hand

        Usage: kopf freeze [OPTIONS] --peering <NAME> --lifetime <SECONDS>

        Options:
          -P, --peering <NAME>      The name of the peering object
          -n, --namespace <NAME>    The namespace of the operators, or those of a pattern such as
                                    `team-*,!team-x`; repeatable
          -A, --all-namespaces      The operators of the whole cluster; also without `-n`
          -i, --id <NAME>           Whose record it is; by default `user@host`
              --context <NAME>      The context of the kubeconfig
          -p, --priority <NUMBER>   The priority; operators of a lower one pause [default: 100]
              --dev                 The priority of a developer, 666
          -t, --lifetime <SECONDS>  For how many seconds, unless `kopf resume` comes first
          -m, --message <TEXT>      Why; taken for the sake of Kopf's scripts, and not kept
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
        End a pause of `kopf freeze`

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
