//! Builds the pinned control plane from its Go modules, once per version.
//!
//! The pins are in `xtask/kube/go.mod`, and those of the newest release, which `KOPF_KUBE=newest`
//! selects, in `xtask/kube/1.36/go.mod`. The binaries are in the user's cache folder, outside the
//! work tree, so that CI and every clone share them.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

const BINARIES: [(&str, &str); 4] = [
    ("etcd", "go.etcd.io/etcd/server/v3"),
    ("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
    ("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
    ("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"),
];

const GO_MOD: &str = include_str!("../../kube/go.mod");
const NEWEST_GO_MOD: &str = include_str!("../../kube/1.36/go.mod");
const NEWEST_FOLDER: &str = "1.36";
/// The newest release uses the kubectl of the usual release.
const NOT_IN_NEWEST: &str = "kubectl";

/// Whether the newest release is selected.
pub(super) fn is_newest() -> bool {
    env::var("KOPF_KUBE").is_ok_and(|it| it == "newest")
}

/// The pinned version without its `v`, such as `1.33.13`.
pub(crate) fn version() -> Result<&'static str> {
    let go_mod = if is_newest() { NEWEST_GO_MOD } else { GO_MOD };
    pinned(go_mod).context("`xtask/kube/go.mod` does not pin k8s.io/kubernetes")
}

fn pinned(go_mod: &'static str) -> Option<&'static str> {
    go_mod.lines().find_map(|line| line.trim().strip_prefix("k8s.io/kubernetes v"))
}

/// `${XDG_CACHE_HOME:-~/.cache}/kopf/kube-<version>`.
pub(super) fn cache() -> Result<PathBuf> {
    Ok(crate::steps::cache()?.join(format!("kube-{}", version()?)))
}

pub(super) fn folder() -> Result<PathBuf> {
    Ok(cache()?.join("bin"))
}

/// Builds missing binaries and returns their folder.
pub(super) fn ensure() -> Result<PathBuf> {
    let folder = folder()?;
    std::fs::create_dir_all(&folder)?;
    let is_built = |name: &str| !(is_newest() && name == NOT_IN_NEWEST);
    for (name, package) in BINARIES.into_iter().filter(|(name, _)| is_built(name)) {
        let target = folder.join(name);
        if !target.exists() {
            build(name, package, &target)?;
        }
    }
    Ok(folder)
}

fn build(name: &str, package: &str, target: &Path) -> Result<()> {
    eprintln!("building {name} (minutes on a cold cache)");
    let began = Instant::now();
    // Renamed when complete, so that a killed build leaves no partial binary.
    let partial = target.with_extension("partial");
    let status = Command::new("nice")
        .args(["-n", "10", "go", "build", "-trimpath", "-ldflags", &linker_flags()?, "-o"])
        .arg(&partial)
        .arg(package)
        .current_dir(modules())
        .envs([("GOTOOLCHAIN", "local"), ("GOFLAGS", "-mod=readonly"), ("CGO_ENABLED", "0")])
        .status()
        .context("could not run go")?;
    if !status.success() {
        bail!("go could not build {name}");
    }
    std::fs::rename(&partial, target)?;
    eprintln!("built {name} in {} s", began.elapsed().as_secs());
    Ok(())
}

/// The folder with the pinned modules.
fn modules() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("kube");
    if is_newest() { folder.join(NEWEST_FOLDER) } else { folder }
}

fn linker_flags() -> Result<String> {
    let version = version()?;
    let mut numbers = version.split('.');
    let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    let values = [
        format!("gitVersion=v{version}"),
        format!("gitMajor={major}"),
        format!("gitMinor={minor}"),
    ];
    let packages = ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"];
    let pairs = packages
        .iter()
        .flat_map(|package| values.iter().map(move |value| format!(" -X {package}.{value}")));
    Ok("-s -w".to_owned() + &pairs.collect::<String>())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_version_comes_from_the_go_module() {
        let version = super::version().unwrap();
        assert!(version.starts_with("1."), "{version}");
        assert!(super::linker_flags().unwrap().contains(&format!("gitVersion=v{version}")));
    }
}
