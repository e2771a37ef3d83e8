#[kopf::handlers]
mod all {
    pub async fn handle() {}
}

fn main() {}
