//! `cargo xtask test`: all tests that need nothing but Rust.

use anyhow::Result;

use crate::build::WORKSPACE;
use crate::steps::step;

/// The test that pins compile errors to the letter.
const COMPILE_ERRORS: &str = "mistakes_are_told_in_one_sentence";

/// All tests that need nothing but Rust.
///
/// The compiler lists other implementations in an order that depends on the features in use, so
/// compile errors are checked with the features that users get by default.
pub(crate) fn run() -> Result<()> {
    // Shows what is compiled: quiet tests would be silent for minutes.
    step("building the tests", "cargo", &[&["test", "--no-run"][..], &WORKSPACE].concat())?;
    let rest = ["--quiet", "--", "--skip", COMPILE_ERRORS];
    step("tests", "cargo", &[&["test"][..], &WORKSPACE, &rest].concat())?;
    step("compile errors", "cargo", &["test", "-p", "kopf", "--test", "it", COMPILE_ERRORS])
}
