//! `cargo xtask pictures`: draws the diagrams of `docs/graphs` and the modules of every crate.
//!
//! The module graph is the one that `tidy` checks. Transitive arrows are left out, and modules in a
//! cycle are framed. Graphviz computes the layout.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::steps::root;
use crate::tidy::modules::{Graph, crates, cycles, graph};
use crate::tidy::texts;

/// The folder of the pictures.
const FOLDER: &str = "docs/modules";

/// The folders of handwritten diagrams and of their pictures.
const DIAGRAMS: (&str, &str) = ("docs/graphs", "docs/src/img");

/// Draws all diagrams and all crates.
pub(crate) fn run() -> Result<()> {
    let root = root();
    diagrams(&root)?;
    let files = texts(&root)?;
    let folder = root.join(FOLDER);
    std::fs::create_dir_all(&folder).with_context(|| format!("could not create {FOLDER}"))?;
    for name in crates(&files) {
        let graph = graph(&name, &files);
        draw(&dot(&name, &graph), &folder.join(format!("{name}.svg")))?;
        println!("{FOLDER}/{name}.svg: {} modules", graph.len());
    }
    Ok(())
}

fn diagrams(root: &Path) -> Result<()> {
    let (sources, pictures) = DIAGRAMS;
    let entries = std::fs::read_dir(root.join(sources))
        .with_context(|| format!("could not read {sources}"))?;
    for entry in entries {
        let source = entry?.path();
        let Some(name) = source.file_stem().and_then(|name| name.to_str()) else { continue };
        let text = std::fs::read_to_string(&source)
            .with_context(|| format!("could not read {}", source.display()))?;
        draw(&text, &root.join(pictures).join(format!("{name}.svg")))?;
        println!("{pictures}/{name}.svg");
    }
    Ok(())
}

fn draw(text: &str, path: &Path) -> Result<()> {
    let mut program = Command::new("dot")
        .args(["-Tsvg", "-o"])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .context("could not start `dot`: install the package graphviz")?;
    let input = program.stdin.take().context("`dot` has no standard input")?;
    { input }.write_all(text.as_bytes()).context("could not write to `dot`")?;
    let status = program.wait().context("could not wait for `dot`")?;
    ensure!(status.success(), "`dot` failed ({status})");
    Ok(())
}

/// The graph in the language of Graphviz.
fn dot(name: &str, graph: &Graph) -> String {
    let mut text = format!(
        "digraph \"{name}\" {{\n  rankdir=LR; ranksep=0.6; nodesep=0.15; fontname=\"sans-serif\";\n  \
         node [shape=box, style=rounded, fontname=\"sans-serif\", fontsize=11, height=0.3];\n  \
         edge [color=\"#777777\", arrowsize=0.6];\n"
    );
    for module in graph.keys() {
        let _ = writeln!(text, "  \"{module}\";");
    }
    for (number, group) in cycles(graph).iter().enumerate() {
        let members: Vec<String> = group.iter().map(|module| format!("\"{module}\"")).collect();
        let _ = writeln!(
            text,
            "  subgraph cluster_{number} {{ style=\"rounded,dashed\"; color=\"#b04020\"; label=\"cycle\"; \
             fontsize=10; {}; }}",
            members.join("; ")
        );
    }
    for (from, targets) in graph {
        for to in direct(graph, from, targets) {
            let _ = writeln!(text, "  \"{from}\" -> \"{to}\";");
        }
    }
    text.push_str("}\n");
    text
}

/// The targets that are not reachable through another target.
fn direct<'a>(graph: &Graph, from: &str, targets: &'a BTreeSet<String>) -> Vec<&'a String> {
    let is_implied = |target: &String| {
        targets.iter().filter(|other| *other != target).any(|other| {
            let below = below(graph, other, from);
            below.contains(target.as_str())
                && !self::below(graph, target, from).contains(other.as_str())
        })
    };
    targets.iter().filter(|target| !is_implied(target)).collect()
}

/// Everything that is reachable from a module without passing through `avoided`.
fn below<'a>(graph: &'a Graph, module: &str, avoided: &str) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut open: Vec<&str> = graph[module].iter().map(String::as_str).collect();
    while let Some(next) = open.pop() {
        if next != avoided && seen.insert(next) {
            open.extend(graph[next].iter().map(String::as_str));
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrows_that_follow_from_others_are_left_out() {
        let modules = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let graph = Graph::from([
            ("a".to_owned(), modules(&["b", "c"])),
            ("b".to_owned(), modules(&["c"])),
            ("c".to_owned(), modules(&[])),
        ]);
        let text = dot("x", &graph);
        assert!(text.contains("\"a\" -> \"b\";") && text.contains("\"b\" -> \"c\";"), "{text}");
        assert!(!text.contains("\"a\" -> \"c\";"), "{text}");
    }
}
