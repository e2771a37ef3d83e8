//! `kopf new`: what it creates and what it rejects. `cargo xtask newcomer` compiles the project and
//! checks that it works.

use expect_test::expect;

use crate::screen::{command, screen};

#[test]
fn a_project_has_everything_and_nothing_to_delete() {
    let folder = tempfile::tempdir().expect("the test can set this up");
    let output = command(folder.path())
        .args(["new", "hello-world"])
        .output()
        .expect("the test can set this up");
    expect![[r#"
        Created the operator `hello-world`. Next:

            cd hello-world
            cargo test                      # tests the handler on an embedded cluster;
                                            # the first build takes a few minutes
            cargo run -- run --embedded     # runs the operator with an embedded cluster
            kopf dev                        # the same, and restarts it on every change

        The project uses the crate `kopf` from a checkout on this machine. If it has to
        compile elsewhere, such as in CI, create it with `kopf new --git URL`.
        (exit code 0)
    "#]]
    .assert_eq(&screen(&output, folder.path()));
    let mut files = Vec::new();
    let mut folders = vec![folder.path().join("hello-world")];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).expect("the test can set this up") {
            let path = entry.expect("the test can set this up").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(
                    path.strip_prefix(folder.path())
                        .expect("the test can set this up")
                        .display()
                        .to_string(),
                );
                let text = std::fs::read_to_string(&path).expect("the test can set this up");
                assert!(!text.contains("{{") || !text.contains("}}"), "{text}");
            }
        }
    }
    files.sort();
    expect![[r#"
        hello-world/.devcontainer/devcontainer.json
        hello-world/.dockerignore
        hello-world/.github/workflows/ci.yaml
        hello-world/.gitignore
        hello-world/AGENTS.md
        hello-world/Cargo.toml
        hello-world/Dockerfile
        hello-world/README.md
        hello-world/example.yaml
        hello-world/src/lib.rs
        hello-world/src/main.rs
        hello-world/tests/operator.rs
    "#]]
    .assert_eq(&(files.join("\n") + "\n"));
}

#[test]
fn projects_are_formatted_whatever_their_names() {
    let folder = tempfile::tempdir().expect("the test can set this up");
    for (project, kind) in [("abacus", "Greeting"), ("zoo", "VeryLongCamelCaseNameOfSomething")] {
        let new = command(folder.path()).args(["new", project, "--kind", kind]).output();
        assert!(new.expect("the test can set this up").status.success());
        let source = |path: &str| folder.path().join(project).join(path);
        let checked = std::process::Command::new("rustfmt")
            .args(["--edition", "2024", "--check"])
            .args(["src/lib.rs", "src/main.rs", "tests/operator.rs"].map(source))
            .output()
            .expect("rustfmt is installed");
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    }
}

#[test]
fn images_of_projects_with_a_checkout_are_built_with_it() {
    let folder = tempfile::tempdir().expect("the test can set this up");
    let run = |arguments: &[&str]| {
        let output = command(folder.path()).arg("new").args(arguments).output();
        assert!(output.expect("the test can set this up").status.success());
    };
    let read = |path: &str| {
        std::fs::read_to_string(folder.path().join(path)).expect("the test can set this up")
    };
    run(&["near"]);
    let checkout = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let checkout = checkout.canonicalize().expect("the test can set this up");
    let checkout = checkout.display();
    let dockerfile = read("near/Dockerfile");
    assert!(dockerfile.contains(&format!("\nCOPY --from=kopf . {checkout}\n")), "{dockerfile}");
    let readme = read("near/README.md");
    let build = format!("docker build --build-context kopf={checkout} -t you/near:1 .");
    assert!(readme.contains(&build), "{readme}");

    run(&["far", "--git", "https://example.com/kopf", "--rev", "abc"]);
    let manifest = read("far/Cargo.toml");
    let dependency = r#"kopf = { git = "https://example.com/kopf", rev = "abc", features"#;
    assert!(manifest.contains(dependency), "{manifest}");
    assert!(!read("far/Dockerfile").contains("--from=kopf"));
}

#[test]
fn handlers_of_projects_are_private_so_that_forgotten_ones_are_warned_of() {
    let folder = tempfile::tempdir().expect("the test can set this up");
    let output = command(folder.path()).args(["new", "hello"]).output();
    assert!(output.expect("the test can set this up").status.success());
    let text = std::fs::read_to_string(folder.path().join("hello/src/lib.rs"));
    let text = text.expect("the test can set this up");
    let handlers = text.split("#[kopf::").skip(1).filter(|rest| rest.starts_with("on::"));
    for handler in handlers {
        assert!(handler.contains("\nasync fn "), "{handler}");
    }
}

#[test]
fn odd_names_and_existing_folders_are_refused() {
    let folder = tempfile::tempdir().expect("the test can set this up");
    std::fs::create_dir(folder.path().join("there")).expect("the test can set this up");
    let run = |arguments: &[&str]| {
        let output = command(folder.path())
            .arg("new")
            .args(arguments)
            .output()
            .expect("the test can set this up");
        screen(&output, folder.path())
    };
    expect![[r#"
        error: the folder `there` already exists
        hint: choose another name, or remove the folder
        (exit code 2)
    "#]]
    .assert_eq(&run(&["there"]));
    expect![[r#"
        error: `Hello World` cannot be the name of a project
        hint: use lower-case letters, digits and dashes, a letter first
        (exit code 2)
    "#]]
    .assert_eq(&run(&["Hello World"]));
    expect![[r#"
        error: `greeting` cannot be the name of a kind
        hint: use CamelCase, such as `Greeting`
        (exit code 2)
    "#]]
    .assert_eq(&run(&["hello", "--kind", "greeting"]));
    expect![[r#"
        error: there is no crate in `nowhere`
        hint: give the folder with the Cargo.toml of `kopf`
        (exit code 2)
    "#]]
    .assert_eq(&run(&["hello", "--kopf", "nowhere"]));
    assert_eq!(
        std::fs::read_dir(folder.path()).expect("the test can set this up").count(),
        1,
        "nothing is half-written"
    );
}
