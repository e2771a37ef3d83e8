//! The program: `cargo run -p example-simple-deployment -- run --embedded`, or `--help`.

fn main() -> kopf::Exit {
    simple_deployment::operator().main()
}
