//! The configuration of each part of the control plane: ports, files, flags.
//!
//! Defines the cluster (RBAC, service range, users). Everything binds to loopback; nothing here
//! starts a process.

use std::fmt::Write as _;
use std::fs;
use std::io::Read;
use std::net::TcpListener;

use anyhow::{Context, Result};

use super::build::is_newest;
use super::pki;
use super::state::{State, USERS};
use crate::kubeconfig;

const TOKEN_BYTES: usize = 16;
/// Features of the newest release that are not enabled by default.
const NEWEST_FEATURES: &str = "--feature-gates=ShardedListAndWatch=true";

pub(super) struct Plan {
    pub(super) state: State,
    port: u16,
    etcd_client: u16,
    etcd_peer: u16,
}

impl Plan {
    /// Chooses the ports. They are free now; another program could still take one before the server
    /// binds, in which case `up` fails and can be repeated.
    pub(super) fn new(state: State, port: Option<u16>) -> Result<Self> {
        let held: Vec<TcpListener> =
            (0..3).map(|_| TcpListener::bind("127.0.0.1:0")).collect::<Result<_, _>>()?;
        let free: Vec<u16> =
            held.iter().map(|held| Ok(held.local_addr()?.port())).collect::<Result<_>>()?;
        Ok(Self { state, port: port.unwrap_or(free[0]), etcd_client: free[1], etcd_peer: free[2] })
    }

    /// Certificates, the token file and the administrator's kubeconfig.
    pub(super) fn write_files(&self) -> Result<()> {
        pki::write(&self.state)?;
        let mut tokens = String::new();
        for (user, groups) in USERS {
            let quoted = if groups.is_empty() { String::new() } else { format!(",\"{groups}\"") };
            writeln!(tokens, "{},{user},{user}-uid{quoted}", random_token()?)?;
        }
        fs::write(self.state.file("tokens.csv"), tokens)?;
        let (_, admin) = self.state.tokens()?.swap_remove(0);
        let text = kubeconfig::render(&self.url(), &self.path("ca.crt"), &admin);
        fs::write(self.state.kubeconfig(), text).context("could not write the kubeconfig")
    }

    pub(super) fn etcd(&self) -> Vec<String> {
        let client = self.etcd_url();
        let peer = format!("http://127.0.0.1:{}", self.etcd_peer);
        vec![
            format!("--data-dir={}", self.path("etcd")),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=default={peer}"),
            // `down` deletes the data, so durability is not needed.
            "--unsafe-no-fsync".to_owned(),
            "--log-level=warn".to_owned(),
        ]
    }

    pub(super) fn apiserver(&self) -> Vec<String> {
        let mut flags = vec![
            format!("--etcd-servers={}", self.etcd_url()),
            "--bind-address=127.0.0.1".to_owned(),
            "--advertise-address=127.0.0.1".to_owned(),
            // A loopback address is not a valid endpoint of the `kubernetes` service.
            "--endpoint-reconciler-type=none".to_owned(),
            format!("--secure-port={}", self.port),
            format!("--tls-cert-file={}", self.path("serving.crt")),
            format!("--tls-private-key-file={}", self.path("serving.key")),
            format!("--client-ca-file={}", self.path("ca.crt")),
            format!("--token-auth-file={}", self.path("tokens.csv")),
            format!("--cert-dir={}", self.path("apiserver-certificates")),
            "--authorization-mode=RBAC".to_owned(),
            "--allow-privileged=true".to_owned(),
            "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={}", self.path("sa.pub")),
            format!("--service-account-signing-key-file={}", self.path("sa.key")),
            // Off by default in 1.33, but clients use it and the goldens have it.
            "--feature-gates=WatchList=true".to_owned(),
            "--profiling=false".to_owned(),
        ];
        if is_newest() {
            flags.push(NEWEST_FEATURES.to_owned());
        }
        flags
    }

    pub(super) fn controllers(&self) -> Vec<String> {
        let kubeconfig = self.path("kubeconfig");
        vec![
            format!("--kubeconfig={kubeconfig}"),
            format!("--service-account-private-key-file={}", self.path("sa.key")),
            format!("--root-ca-file={}", self.path("ca.crt")),
            format!("--cluster-signing-cert-file={}", self.path("ca.crt")),
            format!("--cluster-signing-key-file={}", self.path("ca.key")),
            "--leader-elect=false".to_owned(),
            // Port 0 serves nothing: no metrics are needed and no port is taken.
            "--secure-port=0".to_owned(),
            "--concurrent-gc-syncs=5".to_owned(),
        ]
    }

    pub(super) fn etcd_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.etcd_client)
    }

    fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    fn path(&self, name: &str) -> String {
        self.state.file(name).display().to_string()
    }
}

fn random_token() -> Result<String> {
    let mut bytes = [0; TOKEN_BYTES];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}")))
}
