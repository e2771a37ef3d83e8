//! What counts as a source.

use std::path::Path;
use std::time::Duration;

use tokio::sync::mpsc;

use super::{Sources, is_source};
use crate::command::dev::session::News;

#[test]
fn sources_are_distinguished_from_temporary_files_of_editors() {
    for path in ["/p/src/main.rs", "/p/src/deep/schema.yaml", "/p/Cargo.toml", "/p/build.rs"] {
        assert!(is_source(Path::new(path)), "{path}");
    }
    for path in ["/p/src/.main.rs.swp", "/p/src/main.rs~", "/p/src/4913", "/p/README.md", "/p/src"]
    {
        assert!(!is_source(Path::new(path)), "{path}");
    }
}

#[tokio::test]
async fn a_saved_file_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("src")).unwrap();
    let (sender, mut news) = mpsc::unbounded_channel();
    let _sources = Sources::watch(&[folder.path().to_owned()], sender).unwrap();
    std::fs::write(folder.path().join("README.md"), "no source").unwrap();
    std::fs::write(folder.path().join("src/main.rs"), "fn main() {}").unwrap();
    let first = tokio::time::timeout(Duration::from_secs(20), news.recv()).await.unwrap().unwrap();
    let News::Changed { path, .. } = first else { panic!("something else happened") };
    assert_eq!(path.file_name().unwrap(), "main.rs");
}
