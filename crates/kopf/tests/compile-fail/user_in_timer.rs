use kopf::prelude::*;

#[kopf::timer("kopfexamples", interval = 10)]
async fn handle(user: User) {
    println!("{}", user.name());
}

fn main() {}
