//! The engine against the embedded API server, in process and on a controlled clock.

mod changes;
mod proxy;
mod world;
