//! Compares the dependencies of our crates, and the paths in the text, with `ARCHITECTURE.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

/// Problems with dependencies that the tables of the page do not allow, with crates that are not
/// listed, and with paths that do not exist.
pub(super) fn check(root: &Path, page: &str, metadata: &Value) -> Vec<String> {
    let mut complaints = compare(&allowed(page), &arrows(metadata));
    complaints.extend(misplaced(&places(page), metadata));
    let missing = paths(page).into_iter().filter(|path| !root.join(path).exists());
    complaints.extend(missing.map(|path| format!("ARCHITECTURE.md: `{path}` does not exist")));
    complaints
}

type Arrows = BTreeMap<String, BTreeSet<String>>;

/// The rows of the second table: `` | `third-party` | only in `these`, `crates` | ``.
fn places(page: &str) -> Arrows {
    let section = page.split("| third-party crate |").nth(1).unwrap_or_default();
    let rows = section.lines().skip(2).take_while(|line| line.starts_with('|'));
    let quoted = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    let rows = rows.filter_map(|row| {
        let mut cells = row.split('|').skip(1);
        let names: BTreeSet<String> = quoted(cells.next()?);
        let crates: BTreeSet<String> = quoted(cells.next()?);
        Some(names.into_iter().map(move |name| (name, crates.clone())))
    });
    rows.flatten().collect()
}

/// Problems with third-party crates outside their places; tests may use anything.
fn misplaced(places: &Arrows, metadata: &Value) -> Vec<String> {
    let mut complaints = Vec::new();
    for (name, dependency) in direct_dependencies(metadata) {
        let place = places.get(dependency);
        if place.is_some_and(|place| !place.contains(name)) {
            complaints.push(format!("{name} must not depend on {dependency} (ARCHITECTURE.md)"));
        }
    }
    complaints
}

/// The dependencies of our crates, without those for tests only.
fn direct_dependencies(metadata: &Value) -> Vec<(&str, &str)> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let pairs = packages.filter_map(|package| Some((package["name"].as_str()?, package)));
    let ours = pairs.filter(|(name, _)| name.starts_with("kopf") || *name == "xtask");
    let dependencies = ours.flat_map(|(name, package)| {
        let all = package["dependencies"].as_array().into_iter().flatten();
        let products = all.filter(|dependency| dependency["kind"].as_str() != Some("dev"));
        products.filter_map(move |dependency| Some((name, dependency["name"].as_str()?)))
    });
    dependencies.collect()
}

/// The paths below the root that are in backticks on the page.
fn paths(page: &str) -> BTreeSet<&str> {
    let is_path = |text: &&str| {
        let folder = text.split('/').next().unwrap_or_default();
        text.contains('/')
            && !text.contains(['*', ' ', ':', '<'])
            && matches!(
                folder,
                "crates"
                    | "python"
                    | "examples"
                    | "docs"
                    | "xtask"
                    | "benches"
                    | "ui"
                    | "tools"
                    | "conformance"
            )
    };
    let lines = page.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    lines.filter(is_path).collect()
}

/// The rows of the table: `` | `crate` | purpose | `may`, `use` | ... ``.
fn allowed(page: &str) -> Arrows {
    let mut arrows = Arrows::new();
    for line in page.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, name, _, may_use, ..] = cells.as_slice() else { continue };
        let Some(name) = name.strip_prefix('`').and_then(|name| name.strip_suffix('`')) else {
            continue;
        };
        if name.starts_with("kopf") || name == "xtask" {
            let targets = may_use.split('`').skip(1).step_by(2).map(str::to_owned).collect();
            arrows.insert(name.to_owned(), targets);
        }
    }
    arrows
}

/// The actual dependencies between our crates, without those for tests only.
fn arrows(metadata: &Value) -> Arrows {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let names = packages.filter_map(|package| package["name"].as_str());
    let ours = names.filter(|name| name.starts_with("kopf") || *name == "xtask");
    let mut arrows: Arrows = ours.map(|name| (name.to_owned(), BTreeSet::new())).collect();
    for (name, dependency) in direct_dependencies(metadata) {
        if dependency.starts_with("kopf") {
            arrows.entry(name.to_owned()).or_default().insert(dependency.to_owned());
        }
    }
    arrows
}

fn compare(allowed: &Arrows, real: &Arrows) -> Vec<String> {
    let mut complaints = Vec::new();
    for (name, targets) in real {
        let Some(permitted) = allowed.get(name) else {
            complaints.push(format!("ARCHITECTURE.md: the table has no row for `{name}`"));
            continue;
        };
        for target in targets.difference(permitted) {
            complaints.push(format!("{name} must not depend on {target} (ARCHITECTURE.md)"));
        }
    }
    complaints
}

#[cfg(test)]
mod tests;
