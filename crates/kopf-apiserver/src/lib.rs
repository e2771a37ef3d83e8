//! An embedded Kubernetes API server with built-in controllers: no etcd, no Go, no cluster.

mod schema;
