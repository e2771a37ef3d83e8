//! The program: `cargo run -p example-app-environment -- run --embedded`, or `--help`.

fn main() -> kopf::Exit {
    app_environment::from_environment().main()
}
