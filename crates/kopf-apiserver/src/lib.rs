//! An embedded Kubernetes API server with built-in controllers: no etcd, no Go, no cluster.
//!
//! One request pipeline behind two doors: [`Server::service`] is an in-process `tower` service that
//! `kube::Client` accepts, [`Server::listen`] opens a TLS or plain listener for any other client.

mod activity;
mod admission;
mod apply;
mod clock;
mod controllers;
mod crd;
mod field_error;
mod kinds;
mod local;
mod openapi;
mod patch;
mod protobuf;
mod rbac;
mod request;
mod resource;
mod schema;
mod server;
mod stages;
mod status_error;
mod store;
mod stored;
mod table;
mod user;

pub use clock::{Clock, IdSource, ManualClock, RandomIds, SequentialIds, SystemClock};
pub use field_error::{FieldError, FieldErrorReason};
pub use local::{DeleteOptions, LocalClient, Patch, Target};
pub use request::{RequestInfo, Verb};
pub use resource::{CustomResource, ResourceInfo, ScalePaths, Subresource};
pub use server::{Server, ServerBuilder};
pub use stages::annotation::ParseStageError;
pub use stages::{PodSelector, Stage};
pub use status_error::{Cause, Details, StatusError};
pub use store::StoreLimits;
pub use stored::Stored;
pub use user::User;
