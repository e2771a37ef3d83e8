//! The file on a disk that does not always work.

use super::*;

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("kopf-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

#[test]
fn a_file_is_replaced_as_a_whole() {
    let folder = folder("replaced");
    let file = folder.join("snapshot");
    replace(&file, b"a long first text").expect("it is written");
    replace(&file, b"another").expect("it is written");
    assert_eq!(std::fs::read(&file).expect("it is there"), b"another");
    let left = std::fs::read_dir(&folder).expect("a folder").count();
    assert_eq!(left, 1, "nothing else is left");
    std::fs::remove_dir_all(folder).expect("it is removed");
}

#[test]
fn only_a_missing_file_is_no_error() {
    let folder = folder("unread");
    assert_eq!(read(&folder.join("missing")).expect("it is empty"), Snapshot::default());
    assert!(read(&folder).is_err(), "a folder");
    let file = folder.join("snapshot");
    std::fs::write(&file, b"kopf-snapshot 1\n[").expect("it is written");
    let error = read(&file).expect_err("it is damaged");
    assert_eq!(error.to_string(), "it is damaged");
    std::fs::remove_dir_all(folder).expect("it is removed");
}

#[test]
fn a_folder_that_is_missing_is_an_error() {
    let folder = folder("missing");
    std::fs::remove_dir_all(&folder).expect("it is removed");
    assert!(replace(&folder.join("snapshot"), b"text").is_err());
}
