#[kopf::desired("teams", children("rolebindings"), binds = ["view"])]
fn access() -> Vec<kopf::Child> {
    Vec::new()
}

fn main() {}
