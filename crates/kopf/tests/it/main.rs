//! Handlers through the public API, called as the engine calls them.

mod compile_fail;
mod inputs;
mod kinds;
mod lives;
