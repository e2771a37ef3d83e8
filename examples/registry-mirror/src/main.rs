//! The program: `cargo run -p example-registry-mirror -- run --embedded`, or `--help`.

fn main() -> kopf::Exit {
    registry_mirror::operator().main()
}
