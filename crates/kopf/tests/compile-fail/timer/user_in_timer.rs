use kopf::input::User;

#[kopf::on::timer("kopfexamples", interval = 10)]
async fn handle(user: User) {
    println!("{}", user.name());
}

fn main() {}
