//! A server with a data directory keeps its identity after a restart: old kubeconfigs and tokens
//! work.

use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use kopf_apiserver::{DataDirError, Server};
use kube::api::{Api, ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::json;

/// Opens a directory that another server has just closed.
async fn open(directory: &std::path::Path) -> Server {
    loop {
        match Server::builder().rbac(true).controllers(false).open(directory) {
            Ok(server) => return server,
            Err(DataDirError::Open { .. }) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    }
}

async fn client(kubeconfig: &str) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).unwrap();
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    Client::try_from(config).unwrap()
}

#[tokio::test]
async fn a_kubeconfig_outlives_the_server_that_wrote_it() {
    let directory = tempfile::tempdir().unwrap();
    let server = open(directory.path()).await;
    let listening = server.listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let (address, kubeconfig) = (listening.address(), listening.kubeconfig());
    let admin = client(&kubeconfig).await;
    let accounts: Api<ServiceAccount> = Api::default_namespaced(admin.clone());
    let account = serde_json::from_value(json!({"metadata": {"name": "robot"}})).unwrap();
    accounts.create(&PostParams::default(), &account).await.unwrap();
    let request = serde_json::from_value(json!({"spec": {"audiences": []}})).unwrap();
    let token = accounts.create_token_request("robot", &PostParams::default(), &request).await;
    let token = token.unwrap().status.unwrap().token;
    listening.shutdown().await;
    drop((server, admin, accounts));

    let server = open(directory.path()).await;
    let listening = server.listen(address).await.unwrap();
    assert_eq!(listening.kubeconfig(), kubeconfig);
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&kubeconfig).await);
    maps.list(&ListParams::default()).await.unwrap();
    // The user is known, so it is forbidden rather than unauthorized.
    let robot = kubeconfig.replace(listening.token(), &token);
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&robot).await);
    let refused = maps.list(&ListParams::default()).await.unwrap_err();
    assert!(matches!(&refused, kube::Error::Api(status) if status.code == 403), "{refused}");
    listening.shutdown().await;
}
