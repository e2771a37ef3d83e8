//! What you learn: work repeated at intervals for an object, and values kept in memory with it.
use kopf::input::{Memo, Now};
use kopf::prelude::*;

#[kopf::on::timer("kopf.dev", "v1", "greetings", interval = "5s", sharp)]
async fn tick(count: &mut Memo<u32>, name: Name) -> u32 {
    **count += 1;
    println!("tick {} of {name}", **count);
    **count
}

/// Called only after the object has not changed for ten seconds.
#[kopf::on::timer("kopf.dev", "v1", "greetings", idle = "10s")]
async fn idle(name: Name, Now(now): Now) {
    println!("{name} was left alone until {now}");
}

pub fn operator() -> kopf::Operator {
    kopf::operator!("timers", [tick, idle])
}

fn main() -> kopf::Exit {
    operator().main()
}
