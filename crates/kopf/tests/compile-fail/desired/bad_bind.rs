#[kopf::on::desired("teams", children("rolebindings"), binds = ["view"])]
fn access() -> Vec<kopf::children::Child> {
    Vec::new()
}

fn main() {}
