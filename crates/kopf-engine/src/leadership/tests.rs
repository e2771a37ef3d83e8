use super::{as_name, identity};

#[test]
fn identities_of_kopf_become_valid_names() {
    assert_eq!(as_name("root@vm/20261118005826/4ra"), "root-vm-20261118005826-4ra");
    assert_eq!(as_name("Ünï@host.example.com/1/x"), "n--host-example-com-1-x");
    let own = identity();
    assert_eq!(as_name(&own), own, "ours are valid already");
}

#[test]
fn long_identities_keep_their_unique_end() {
    let name = as_name(&format!("{}/abc", "h".repeat(100)));
    assert!(name.len() == 63 && name.ends_with("-abc"), "{name}");
}
