use super::*;

fn files(texts: &[(&str, &str)]) -> Vec<(String, String)> {
    texts.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
}

fn with_fields(name: &str, count: usize) -> String {
    let fields: Vec<String> = (0..count)
        .map(|number| format!("    /// One.\n    pub(crate) field_{number}: Vec<u8>,\n"))
        .collect();
    format!(
        "//! A file.\n\npub struct {name}<T>\nwhere\n    T: Clone,\n{{\n{}}}\n",
        fields.concat()
    )
}

#[test]
fn a_planted_struct_with_many_fields_is_found() {
    let large = with_fields("Large", 13);
    let found = check(&files(&[("crates/kopf-engine/src/a.rs", &large)]));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("crates/kopf-engine/src/a.rs:3: `Large` has 13 fields"));
    let small = with_fields("Small", 12);
    assert!(check(&files(&[("crates/kopf-engine/src/a.rs", &small)])).is_empty());
}

#[test]
fn plain_data_and_tests_may_be_large() {
    let settings = with_fields("Posting", 20);
    let large = with_fields("Large", 20);
    let found = check(&files(&[
        ("crates/kopf-core/src/settings.rs", &settings),
        ("crates/kopf-core/src/settings/tests.rs", &large),
    ]));
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn planted_methods_in_many_files_are_found() {
    let methods = "impl<'a, F: Fn(u8) -> u8> Wide<'a, F> {\n    fn f() {}\n}\n";
    let mut texts = vec![("crates/kopf-x/src/wide.rs", "pub(crate) struct Wide<'a, F>(&'a F);\n")];
    for file in ["crates/kopf-x/src/a.rs", "crates/kopf-x/src/b.rs", "crates/kopf-x/src/wide/c.rs"]
    {
        texts.push((file, methods));
    }
    assert!(check(&files(&texts)).is_empty(), "three files are allowed");
    texts.push(("crates/kopf-x/src/d.rs", methods));
    let found = check(&files(&texts));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("`Wide`") && found[0].contains("src/wide/c.rs"), "{found:?}");
}

#[test]
fn traits_and_other_types_of_the_same_name_do_not_count() {
    let declared = "struct Node;\nimpl Node {\n}\n";
    let found = check(&files(&[
        ("crates/kopf-x/src/one.rs", declared),
        ("crates/kopf-x/src/one/a.rs", "impl Node {\n}\n"),
        ("crates/kopf-x/src/two.rs", declared),
        ("crates/kopf-x/src/two/a.rs", "impl Node {\n}\n"),
        ("crates/kopf-x/src/two/b.rs", "impl Clone for Node {\n}\n"),
        ("crates/kopf-x/src/two/tests.rs", "impl Node {\n}\n"),
    ]));
    assert!(found.is_empty(), "{found:?}");
}
