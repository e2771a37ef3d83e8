//! Tests of the `kopf` command: its screens, its errors, its exit codes.

mod developing;
mod doctor;
mod errors;
mod explaining;
mod forwarding;
mod monitoring;
mod new;
mod pausing;
mod screen;
mod screens;
mod situations;
mod tls;
