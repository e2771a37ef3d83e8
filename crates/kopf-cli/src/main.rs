//! The `kopf` binary.

use std::process::ExitCode;

/// Objects are trees of many small allocations, for which the system allocator is slow.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    kopf_cli::main()
}
