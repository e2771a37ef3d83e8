//! A TCP proxy between the operator and the server, whose connections can be cut or silenced.
//!
//! Knows nothing of what it forwards; TLS goes through as it is.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A listener whose port is taken for a moment is tried again after this.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What happens to connections that are open.
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

    /// Cuts the operator off until the connections are cut.
    pub(super) fn block(&self) {
        self.orders.send_replace(Order::Block);
    }

    /// New connections are not affected.
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
    // A server that is down closes the connection, as without a proxy.
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
