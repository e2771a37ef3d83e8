//! An embedded Kubernetes API server with built-in controllers: no etcd, no Go, no cluster.
//!
//! One request pipeline with two entry points: [`Server::service`] is an in-process `tower` service
//! for `kube::Client`, and [`Server::listen`] opens a TLS or plain listener for any other client.

mod admission;
mod answer;
mod audit;
mod authn;
mod authority;
mod authorize;
mod body;
mod clock;
mod controllers;
mod convert;
mod crd;
mod discovery;
mod encode;
mod faults;
mod http_request;
mod limits;
mod listen;
mod local;
mod matcher;
mod metrics;
mod negotiate;
mod openapi;
mod path;
mod persist;
mod pipeline;
mod query;
mod rbac;
mod request;
mod request_log;
mod rest;
mod reviews;
mod server;
mod service;
mod stage_rules;
mod state;
mod store;
mod subresources;
mod tokens;
mod webhooks;
mod websocket;

use kopf_apimachinery::{
    access, apply, decode, fields, go_print, label_selectors, lockstep, meta, pack, patch,
    quantity, registry, resource, schema, selector, shape, status_error, stored,
};
use kopf_kinds::{self as kinds, table};

pub use kopf_apimachinery::{
    Cause, CustomResource, Details, FieldError, FieldErrorReason, ResourceInfo, ScalePaths,
    StatusError, Stored, Subresource, User,
};

pub use kopf_controllers::stages::{ParseStageError, PodSelector, Stage};

pub use body::Body;
pub use clock::{Clock, IdSource, ManualClock, RandomIds, SequentialIds, SystemClock};
pub use faults::{Fault, Trouble};
pub use limits::ServingLimits;
pub use listen::{ListenError, Listening};
pub use local::{DeleteOptions, LocalClient, Patch, Target};
pub use matcher::RequestMatcher;
pub use persist::DataDirError;
pub use request::{RequestInfo, Verb};
pub use request_log::LoggedRequest;
pub use server::{LoadError, Server, ServerBuilder};
pub use service::Service;
pub use store::StoreLimits;
pub use webhooks::{FallibleWebhookFunction, WebhookFunction, WebhookTarget};
