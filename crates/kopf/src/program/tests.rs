//! Arguments and failures.

use clap::{CommandFactory as _, Parser as _};

use super::arguments::{Arguments, Command, RunArguments};

fn parse(words: &[&str]) -> Result<Box<RunArguments>, clap::Error> {
    let words = ["demo", "run"].iter().chain(words);
    Arguments::try_parse_from(words).map(|arguments| match arguments.command {
        Command::Run(run) => run,
        _ => unreachable!("the first word is `run`"),
    })
}

#[test]
fn the_arguments_are_consistent() {
    Arguments::command().debug_assert();
}

#[test]
fn namespaces_exclude_the_whole_cluster() {
    assert!(parse(&["-A", "-n", "a"]).is_err());
    let config = parse(&["-n", "a", "--namespace", "b"])
        .expect("valid arguments")
        .config("demo")
        .expect("a valid configuration");
    assert_eq!(config.namespaces, ["a", "b"]);
    assert!(!config.all_namespaces);
}

#[test]
fn developers_take_precedence() {
    let config = parse(&["--dev", "-p", "5"])
        .expect("valid arguments")
        .config("demo")
        .expect("a valid configuration");
    assert_eq!(config.priority, Some(666));
}

#[test]
fn probes_have_an_address_and_a_path() {
    let arguments =
        parse(&["--liveness", "http://127.0.0.1:8080/healthz"]).expect("valid arguments");
    let endpoint = arguments.config("demo").expect("a valid endpoint").probes.expect("an endpoint");
    assert_eq!(endpoint.address.to_string(), "127.0.0.1:8080");
    assert_eq!(endpoint.path, "/healthz");
    for wrong in ["https://localhost/", "localhost:8080", "http://localhost:http/"] {
        let arguments = parse(&["--liveness", wrong]).expect("any text is an argument");
        assert!(arguments.config("demo").is_err(), "{wrong}");
    }
    let arguments = parse(&["-L", "http://localhost:99999/"]).expect("any text is an argument");
    let failure = arguments.config("demo").err().expect("there is no such port").render();
    assert!(failure.contains("its port is not a number up to 65535"), "{failure}");
}

#[test]
fn log_formats_are_checked() {
    assert!(parse(&["--log-format", "JSON"]).is_ok());
    let error = parse(&["--log-format", "xml"]).err().expect("an unknown format");
    assert!(error.to_string().contains("the log format must be plain, full or json"), "{error}");
}
