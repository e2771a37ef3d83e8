//! An embedded Kubernetes API server with built-in controllers: no etcd, no Go, no cluster.
//!
//! One request pipeline behind two doors: [`Server::service`] is an in-process `tower` service that
//! `kube::Client` accepts, [`Server::listen`] opens a TLS or plain listener for any other client.

mod activity;
mod admission;
mod apply;
mod authn;
mod body;
mod clock;
mod controllers;
mod convert;
mod crd;
mod decode;
mod discovery;
mod encode;
mod field_error;
mod kinds;
mod listen;
mod local;
mod meta;
mod negotiate;
mod openapi;
mod patch;
mod path;
mod pipeline;
mod protobuf;
mod query;
mod rbac;
mod registry;
mod request;
mod resource;
mod rest;
mod reviews;
mod schema;
mod selector;
mod server;
mod service;
mod stages;
mod status_error;
mod store;
mod stored;
mod subresources;
mod table;
mod tokens;
mod user;

pub use body::Body;
pub use clock::{Clock, IdSource, ManualClock, RandomIds, SequentialIds, SystemClock};
pub use field_error::{FieldError, FieldErrorReason};
pub use listen::{ListenError, Listening};
pub use local::{DeleteOptions, LocalClient, Patch, Target};
pub use request::{RequestInfo, Verb};
pub use resource::{CustomResource, ResourceInfo, ScalePaths, Subresource};
pub use server::{Server, ServerBuilder};
pub use service::Service;
pub use stages::annotation::ParseStageError;
pub use stages::{PodSelector, Stage};
pub use status_error::{Cause, Details, StatusError};
pub use store::StoreLimits;
pub use stored::Stored;
pub use user::User;
