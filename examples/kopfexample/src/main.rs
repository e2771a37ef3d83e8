//! The program: `cargo run -p kopfexample -- run --embedded`, or `--help`.

fn main() -> kopf::Exit {
    kopfexample::operator().main()
}
