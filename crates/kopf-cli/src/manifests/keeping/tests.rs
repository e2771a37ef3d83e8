use std::path::Path;

use super::write;

fn files(text: &str) -> Vec<(String, String)> {
    vec![("a.yaml".to_owned(), text.to_owned()), ("deep/b.yaml".to_owned(), text.to_owned())]
}

fn read(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap()
}

#[test]
fn unchanged_files_are_replaced() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(write(folder.path(), &files("one"), false).unwrap().kept, [""; 0]);
    assert_eq!(write(folder.path(), &files("two"), false).unwrap().kept, [""; 0]);
    assert_eq!(read(folder.path(), "deep/b.yaml"), "two");
}

#[test]
fn changed_files_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &files("one"), false).unwrap();
    std::fs::write(folder.path().join("a.yaml"), "mine").unwrap();
    assert_eq!(write(folder.path(), &files("two"), false).unwrap().kept, ["a.yaml"]);
    assert_eq!(read(folder.path(), "a.yaml"), "mine");
    assert_eq!(read(folder.path(), "a.yaml.new"), "two");
    assert_eq!(write(folder.path(), &files("three"), false).unwrap().kept, ["a.yaml"]);
    assert_eq!(write(folder.path(), &files("four"), true).unwrap().kept, [""; 0]);
    assert_eq!(read(folder.path(), "a.yaml"), "four");
}

#[test]
fn foreign_files_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.yaml"), "theirs").unwrap();
    assert_eq!(write(folder.path(), &files("one"), false).unwrap().kept, ["a.yaml"]);
    assert_eq!(read(folder.path(), "a.yaml"), "theirs");
}
