//! The program: `cargo run -p example-sample-kustomize -- run --embedded`, or `--help`.
//!
//! With `SAMPLE_KUBECTL=1` in the environment, it calls `kubectl` instead of applying by itself.

fn main() -> kopf::Exit {
    let calls_kubectl = std::env::var_os("SAMPLE_KUBECTL").is_some_and(|value| value == "1");
    match calls_kubectl {
        true => sample_kustomize::kubectl::operator().main(),
        false => sample_kustomize::operator().main(),
    }
}
