//! The files and the users of one control plane.
//!
//! Responsible for the folder layout in the cache; starts nothing.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

/// In start order; stopped in reverse.
const PARTS: [&str; 3] = ["etcd", "kube-apiserver", "kube-controller-manager"];
const LOG_TAIL_LINES_MAX: usize = 20;

/// The users, who get a token each: name, then groups in the format of the token file.
pub(super) const USERS: [(&str, &str); 4] = [
    ("admin", "system:masters"),
    ("alice", "developers"),
    ("bob", "developers,operators"),
    ("nobody", ""),
];

#[derive(Clone)]
pub(super) struct State {
    folder: PathBuf,
}

impl State {
    pub(super) fn of(name: &str) -> Result<Self> {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
        if name.is_empty() || !name.chars().all(plain) {
            bail!("`{name}` is no instance name: use letters, digits and `-`");
        }
        Ok(Self { folder: super::build::cache()?.join("state").join(name) })
    }

    pub(super) fn parts(&self) -> [&'static str; 3] {
        PARTS
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(super) fn pid_file(&self, part: &str) -> PathBuf {
        self.file(&format!("{part}.pid"))
    }

    pub(super) fn log_file(&self, part: &str) -> PathBuf {
        self.file(&format!("{part}.log"))
    }

    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.file("kubeconfig")
    }

    /// Creates an empty folder that only its owner can read.
    pub(super) fn reset(&self) -> Result<()> {
        use std::os::unix::fs::PermissionsExt;
        self.remove()?;
        fs::create_dir_all(&self.folder)
            .with_context(|| format!("could not create `{}`", self.folder.display()))?;
        fs::set_permissions(&self.folder, fs::Permissions::from_mode(0o700))?;
        Ok(())
    }

    pub(super) fn remove(&self) -> Result<()> {
        match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("could not remove `{}`", self.folder.display()))
            }
            _ => Ok(()),
        }
    }

    /// Users and their tokens, as stored in the token file.
    pub(super) fn tokens(&self) -> Result<Vec<(String, String)>> {
        let text = fs::read_to_string(self.file("tokens.csv"))?;
        let pair = |line: &str| {
            let mut columns = line.split(',');
            let token = columns.next()?.to_owned();
            Some((columns.next()?.to_owned(), token))
        };
        Ok(text.lines().filter_map(pair).collect())
    }

    pub(super) fn log_tail(&self, part: &str) -> String {
        let text = fs::read_to_string(self.log_file(part)).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LOG_TAIL_LINES_MAX)..].join("\n")
    }
}
