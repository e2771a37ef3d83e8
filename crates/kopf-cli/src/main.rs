//! The `kopf` binary.

use std::process::ExitCode;

/// Objects are trees of many small parts, which the system's allocator is slow with.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    kopf_cli::main()
}
