//! The SBOM of an operator, checked against the schema of CycloneDX.
//!
//! The schema comes with the Python package `cyclonedx-python-lib`, from PyPI.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::{EXAMPLES, output, tool};
use crate::cluster::target;
use crate::steps::{cache, root};

/// The package to install, once, in its own environment.
const VALIDATOR: &str = "cyclonedx-python-lib[json-validation]==11.12.0";
/// Reads a document from its first argument.
const PROGRAM: &str = "
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
text = open(sys.argv[1]).read()
error = JsonStrictValidator(SchemaVersion.V1_5).validate_str(text)
sys.exit(error and repr(error))
";

/// Returns `None` if Python is missing.
pub(super) fn check() -> Result<Option<()>> {
    if tool("python3").is_none() {
        return Ok(None);
    }
    let python = environment()?;
    let folder = root().join("examples").join(EXAMPLES[0]);
    let mut sbom = Command::new(target().join("debug/kopf"));
    sbom.arg("sbom").current_dir(&folder);
    let text = output(sbom)?;
    let file = target().join("charts/sbom.json");
    std::fs::write(&file, &text)?;
    let mut validate = Command::new(python);
    validate.args(["-c", PROGRAM]).arg(&file);
    output(validate)?;
    let count = text.matches("\"purl\"").count();
    println!("── charts: the list of {count} parts of {} is valid CycloneDX", EXAMPLES[0]);
    Ok(Some(()))
}

/// A Python that has the validator.
fn environment() -> Result<PathBuf> {
    let folder = cache()?.join("cyclonedx");
    let python = folder.join("bin/python");
    if !folder.join("ready").exists() {
        let mut create = Command::new("python3");
        create.args(["-m", "venv"]).arg(&folder);
        output(create)?;
        let mut install = Command::new(&python);
        install.args(["-m", "pip", "install", "--quiet", VALIDATOR]);
        output(install)?;
        std::fs::write(folder.join("ready"), "")?;
    }
    Ok(python)
}
