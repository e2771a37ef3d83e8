//! `cargo xtask test`: all tests that need nothing but Rust.

use anyhow::Result;

use crate::build::WORKSPACE;
use crate::steps::step;

/// The snapshot test of compile errors.
const COMPILE_ERRORS: &str = "mistakes_are_reported_in_one_sentence";

/// All tests that need nothing but Rust.
///
/// The order in which the compiler lists other implementations depends on the enabled features, so
/// compile errors are checked with the default features.
pub(crate) fn run() -> Result<()> {
    // Shows what is compiled: quiet tests would be silent for minutes.
    step("building the tests", "cargo", &[&["test", "--no-run"][..], &WORKSPACE].concat())?;
    let rest = ["--quiet", "--", "--skip", COMPILE_ERRORS];
    step("tests", "cargo", &[&["test"][..], &WORKSPACE, &rest].concat())?;
    step("compile errors", "cargo", &["test", "-p", "kopf", "--test", "it", COMPILE_ERRORS])
}
