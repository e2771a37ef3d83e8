//! `kopf explain KIND/NAME`: what an operator did to one object, and what it waits for.

pub mod story;
