//! A TCP proxy that counts what a replica receives.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;

/// Forwards connections to one server. Its threads end with the connections, and the listener with
/// the program.
pub(super) struct Proxy {
    pub(super) address: SocketAddr,
    received: Arc<AtomicU64>,
}

impl Proxy {
    /// Listens on a free port.
    pub(super) fn start(server: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let received = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&received);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // A connection that cannot be made ends, as it would without a proxy.
                let _ = forward(client, server, &counter);
            }
        });
        Ok(Self { address, received })
    }

    /// How many bytes the server has sent.
    #[expect(clippy::cast_precision_loss, reason = "bytes of a benchmark are few")]
    pub(super) fn received_bytes(&self) -> f64 {
        self.received.load(Ordering::Relaxed) as f64
    }
}

fn forward(client: TcpStream, server: SocketAddr, received: &Arc<AtomicU64>) -> Result<()> {
    let upstream = TcpStream::connect(server)?;
    client.set_nodelay(true)?;
    upstream.set_nodelay(true)?;
    let (from, to, counter) = (upstream.try_clone()?, client.try_clone()?, Arc::clone(received));
    std::thread::spawn(move || copy(from, to, &counter));
    std::thread::spawn(move || copy(client, upstream, &AtomicU64::new(0)));
    Ok(())
}

/// Copies until one side ends, and then ends both.
fn copy(mut from: TcpStream, mut to: TcpStream, counter: &AtomicU64) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        counter.fetch_add(length as u64, Ordering::Relaxed);
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    // They may have ended already.
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
