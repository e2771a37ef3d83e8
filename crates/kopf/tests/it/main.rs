//! Handlers through the public API, called the way the engine calls them.

mod compile_fail;
mod conditions;
mod conversion;
mod desired;
mod inputs;
mod kinds;
mod lives;
mod observe;
mod parity;
mod surface;
