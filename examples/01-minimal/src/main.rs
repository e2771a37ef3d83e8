//! What you learn: the smallest operator.

fn main() {}
