//! All examples in one program, so that tests can start any of them as a separate process.
//!
//! The variable `EXAMPLE` selects the example; everything else is as in the program of that
//! example.

use example_proofs::examples;

fn main() -> kopf::Exit {
    let name = std::env::var("EXAMPLE").unwrap_or_default();
    let operator = examples::operator(&name);
    operator.unwrap_or_else(|| panic!("there is no example {name:?}")).main()
}
