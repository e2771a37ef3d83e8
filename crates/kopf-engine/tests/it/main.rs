//! The engine against the embedded API server, in process and on a controlled clock.

mod admission;
mod background;
mod changes;
mod chaos;
mod crds;
mod debug;
mod desired;
mod edits;
mod fairness;
mod faults;
mod indexes;
mod leaks;
mod logged;
mod login;
mod operator;
mod outages;
mod peering;
mod probes;
mod progress;
mod proxy;
mod real;
mod secrets;
mod subhandlers;
mod threads;
mod torture;
mod world;
