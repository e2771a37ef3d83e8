//! The program: `cargo run -p example-load-test -- run --embedded`, or `--help`.

fn main() -> kopf::Exit {
    load_test::operator().main()
}
