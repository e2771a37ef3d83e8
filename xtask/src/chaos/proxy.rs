//! A TCP proxy between the operator and the server, whose connections can be cut or silenced.
//!
//! Does not interpret the forwarded data; TLS passes through unchanged.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// The pause before retrying a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The state of open connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Cut,
    /// Nothing is forwarded any more, but the connections stay open until they are cut.
    Silence,
    /// The same, and new connections are not forwarded either.
    Block,
}

pub(super) struct Proxy {
    pub(super) address: SocketAddr,
    orders: watch::Sender<Order>,
}

impl Proxy {
    /// Listens on a free port of loopback and forwards to the server.
    pub(super) async fn start(server: &str) -> Result<Self> {
        let listener =
            TcpListener::bind(("127.0.0.1", 0)).await.context("no port for the proxy")?;
        let address = listener.local_addr()?;
        let (orders, received) = watch::channel(Order::Cut);
        tokio::spawn(accept(listener, server.to_owned(), received));
        Ok(Self { address, orders })
    }

    pub(super) fn cut(&self) {
        self.orders.send_replace(Order::Cut);
    }

    /// Blocks all connections until they are cut.
    pub(super) fn block(&self) {
        self.orders.send_replace(Order::Block);
    }

    /// Silences open connections; new ones are not affected.
    pub(super) fn silence(&self) {
        self.orders.send_replace(Order::Silence);
    }
}

async fn accept(listener: TcpListener, server: String, orders: watch::Receiver<Order>) {
    loop {
        match listener.accept().await {
            Ok((client, _)) => {
                tokio::spawn(forward(client, server.clone(), orders.clone()));
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn forward(mut client: TcpStream, server: String, mut orders: watch::Receiver<Order>) {
    while *orders.borrow_and_update() == Order::Block {
        if orders.changed().await.is_err() {
            return;
        }
    }
    // If the server is down, the connection is closed, as without a proxy.
    let Ok(mut upstream) = TcpStream::connect(&server).await else { return };
    tokio::select! {
        _ = copy_bidirectional(&mut client, &mut upstream) => return,
        _ = orders.changed() => {}
    }
    while *orders.borrow_and_update() != Order::Cut {
        if orders.changed().await.is_err() {
            return;
        }
    }
}
