//! The `kopf` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    kopf_cli::main()
}
