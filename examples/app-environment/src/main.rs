//! The program: `cargo run -p example-app-environment -- run --embedded`, or `--help`.
//!
//! `REGISTRY` is the address of the registry, `REGISTRY_KEY` the key of the passwords in it.

use app_environment::{Passwords, RegistryClient, operator};

fn main() -> kopf::Exit {
    let variable = |name: &str, default: &str| std::env::var(name).unwrap_or(default.to_owned());
    let registry = RegistryClient::over_tcp(&variable("REGISTRY", "127.0.0.1:8081"));
    let passwords = Passwords::new(&variable("REGISTRY_KEY", "only for the demo"));
    operator(registry, passwords).main()
}
