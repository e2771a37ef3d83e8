use super::*;

fn folder(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let id = std::process::id();
    let folder = std::env::temp_dir().join(format!("kopf-service-account-{id}-{name}"));
    std::fs::create_dir_all(&folder).expect("a folder");
    for (file, text) in files {
        std::fs::write(folder.join(file), text).expect("a file");
    }
    folder
}

#[test]
fn the_files_of_a_pod_become_a_configuration() {
    let folder = folder("whole", &[("token", "secret"), ("namespace", "team\n")]);
    let server = Some("https://10.0.0.1:443".to_owned());
    let account = ServiceAccount { folder: folder.clone(), server };
    assert!(account.exists());
    let config = account.config().expect("a configuration");
    assert_eq!(config.cluster_url, "https://10.0.0.1:443");
    assert_eq!(config.default_namespace, "team");
    assert_eq!(config.auth_info.token_file, Some(folder.join("token").display().to_string()));
    std::fs::remove_dir_all(folder).expect("it can go");
}

#[test]
fn without_a_token_there_is_no_account() {
    let account = ServiceAccount { folder: folder("empty", &[]), server: None };
    assert!(!account.exists());
    let error = account.config().expect_err("there is nothing");
    assert_eq!(error.to_string(), "could not use the credentials of the service account");
    std::fs::remove_dir_all(account.folder).expect("it can go");
}
