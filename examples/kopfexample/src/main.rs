//! The program: `cargo run -p example-kopfexample -- run --embedded`, or `--help`.

fn main() -> kopf::Exit {
    kopfexample::operator().main()
}
