//! An in-memory registry for the demo: `cargo run -p example-app-environment --bin registry`.

use app_environment::fake::FakeRegistry;
use tokio::net::TcpListener;

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let address = std::env::var("REGISTRY").unwrap_or_else(|_| "127.0.0.1:8081".into());
    let listener = TcpListener::bind(address).await?;
    println!("a registry in memory listens at {}", listener.local_addr()?);
    FakeRegistry::default().accept(listener).await
}
