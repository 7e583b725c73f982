//! Builds a wheel from a package directory, without Python. The same files give the same bytes.

use std::collections::BTreeMap;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use toml::Value;

use super::files::{PackageFile, Reader, entries, ignore_rules};
use super::ignore::IgnoreRules;
use super::package::PackageError;
use super::project::Project;
use super::zip::Zip;

#[derive(Clone, Debug)]
pub(crate) struct Wheel {
    pub(crate) file_name: String,
    pub(crate) bytes: Vec<u8>,
    /// Names of the package's files in the source directory.
    pub(crate) sources: Vec<String>,
}

pub(crate) fn build(top: &Path, project: &Project) -> Result<Wheel, PackageError> {
    let selected = select(top, project)?;
    let mut reader = Reader::default();
    let mut files = Vec::new();
    let mut sources = Vec::new();
    for (inside, source) in selected {
        let file = reader.read(top, source.clone())?;
        files.push(PackageFile { name: inside, ..file });
        sources.push(source);
    }
    sources.sort_unstable();
    let stem = format!("{}-{}", project.file_name(), project.version);
    let directory = format!("{stem}.dist-info");
    files.append(&mut metadata_files(top, project, &directory)?);
    files.push(record(&files, &directory));

    let mut zip = Zip::default();
    let too_large = |error: super::zip::ZipTooLarge| PackageError::Archive { reason: error.to_string() };
    for file in &files {
        zip.add(&file.name, &file.bytes, file.executable).map_err(too_large)?;
    }
    let file_name = format!("{stem}-py3-none-any.whl");
    Ok(Wheel { file_name, bytes: zip.finish().map_err(too_large)?, sources })
}

/// Files of the wheel: name inside → name in the directory.
fn select(top: &Path, project: &Project) -> Result<BTreeMap<String, String>, PackageError> {
    let selection = &project.selection;
    let outside = IgnoreRules::parse(&format!("{}\n*.py[cdo]\n", selection.exclude.join("\n")));
    let rules = Walk { ignored: ignore_rules(top)?, outside };
    let mut files = BTreeMap::new();
    for package in &selection.packages {
        rules.package(top, package, &mut files)?;
    }
    for module in &selection.modules {
        rules.module(top, module, &mut files)?;
    }
    if !selection.include.is_empty() {
        let wanted = IgnoreRules::parse(&selection.include.join("\n"));
        let mut all = Vec::new();
        rules.walk(top, "", &mut all)?;
        let chosen = all.into_iter().filter(|name| wanted.covers(name) && !is_project_file(name));
        files.extend(chosen.map(|name| (name.clone(), name)));
    }
    if files.is_empty() && selection.packages.is_empty() && selection.include.is_empty() {
        rules.by_name(top, &project.file_name(), &mut files)?;
    }
    if files.is_empty() {
        return Err(PackageError::NoModule { path: top.to_owned(), name: project.file_name() });
    }
    Ok(files)
}

/// Files that describe the package and are not part of it.
fn is_project_file(name: &str) -> bool {
    matches!(name, "pyproject.toml" | "README.md" | ".gitignore")
}

struct Walk {
    ignored: IgnoreRules,
    outside: IgnoreRules,
}

impl Walk {
    fn leaves_out(&self, name: &str) -> bool {
        self.ignored.ignores(name) || self.outside.covers(name)
    }

    fn package(
        &self,
        top: &Path,
        package: &str,
        files: &mut BTreeMap<String, String>,
    ) -> Result<(), PackageError> {
        let directory = top.join(package);
        if !std::fs::symlink_metadata(&directory).is_ok_and(|metadata| metadata.is_dir()) {
            return Err(PackageError::NoPackageDirectory { path: directory });
        }
        let mut names = Vec::new();
        self.walk(&directory, package, &mut names)?;
        // `src/demo` becomes `demo`.
        let above = package.rsplit_once('/').map_or(0, |(above, _)| above.len() + 1);
        files.extend(names.into_iter().map(|name| (name[above..].to_owned(), name)));
        Ok(())
    }

    fn module(
        &self,
        top: &Path,
        module: &str,
        files: &mut BTreeMap<String, String>,
    ) -> Result<(), PackageError> {
        let name = format!("{module}.py");
        if !top.join(&name).is_file() {
            return Err(PackageError::NoPackageDirectory { path: top.join(name) });
        }
        files.insert(name.clone(), name);
        Ok(())
    }

    /// The directory or module with the package's name.
    fn by_name(
        &self,
        top: &Path,
        name: &str,
        files: &mut BTreeMap<String, String>,
    ) -> Result<(), PackageError> {
        for package in [name.to_owned(), format!("src/{name}")] {
            if top.join(&package).join("__init__.py").is_file() {
                return self.package(top, &package, files);
            }
        }
        if top.join(format!("{name}.py")).is_file() {
            return self.module(top, name, files);
        }
        Ok(())
    }

    fn walk(&self, directory: &Path, below: &str, names: &mut Vec<String>) -> Result<(), PackageError> {
        for entry in entries(directory)? {
            let name = if below.is_empty() { entry.name.clone() } else { format!("{below}/{}", entry.name) };
            let product = entry.name == "__pycache__" || entry.name == ".git";
            // The top contains build products and files of tools.
            let tool = below.is_empty() && (entry.name.starts_with('.') || entry.name == "dist");
            if product || tool || self.leaves_out(&name) {
                continue;
            }
            if entry.kind.is_symlink() {
                return Err(PackageError::Link { path: entry.path });
            }
            if entry.kind.is_dir() {
                self.walk(&entry.path, &name, names)?;
            } else if entry.kind.is_file() {
                names.push(name);
            } else {
                return Err(PackageError::NotAFile { path: entry.path });
            }
        }
        Ok(())
    }
}

/// The `dist-info` directory without `RECORD`, which lists all files and so is made last.
fn metadata_files(top: &Path, project: &Project, directory: &str) -> Result<Vec<PackageFile>, PackageError> {
    let file = |name: &str, bytes: Vec<u8>| PackageFile {
        name: format!("{directory}/{name}"),
        bytes,
        executable: false,
    };
    let mut files = vec![file("METADATA", metadata(top, project)?.into_bytes())];
    let wheel = "Wheel-Version: 1.0\nGenerator: aec-bench\nRoot-Is-Purelib: true\nTag: py3-none-any\n";
    files.push(file("WHEEL", wheel.into()));
    if !project.entry_points.is_empty() {
        files.push(file("entry_points.txt", entry_points(project).into_bytes()));
    }
    Ok(files)
}

fn record(files: &[PackageFile], directory: &str) -> PackageFile {
    let mut text = String::new();
    for file in files {
        let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(&file.bytes));
        text.push_str(&format!("{},sha256={hash},{}\n", csv_field(&file.name), file.bytes.len()));
    }
    let name = format!("{directory}/RECORD");
    text.push_str(&format!("{name},,\n"));
    PackageFile { name, bytes: text.into_bytes(), executable: false }
}

fn csv_field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

fn entry_points(project: &Project) -> String {
    let mut text = String::new();
    for (group, entries) in &project.entry_points {
        text.push_str(&format!("[{group}]\n"));
        for (name, target) in entries {
            text.push_str(&format!("{name} = {target}\n"));
        }
        text.push('\n');
    }
    text
}

fn metadata(top: &Path, project: &Project) -> Result<String, PackageError> {
    let mut text = format!("Metadata-Version: 2.1\nName: {}\nVersion: {}\n", project.name, project.version);
    let mut field = |name: &str, value: &str| text.push_str(&format!("{name}: {value}\n"));
    if !project.description.is_empty() {
        field("Summary", &project.description);
    }
    if !project.keywords.is_empty() {
        field("Keywords", &project.keywords.join(","));
    }
    if let Some(license) = license(project) {
        field("License", &license);
    }
    for (label, url) in &project.urls {
        field("Project-URL", &format!("{label}, {url}"));
    }
    for classifier in &project.classifiers {
        field("Classifier", classifier);
    }
    if let Some(python) = &project.requires_python {
        field("Requires-Python", python);
    }
    for (extra, _) in &project.extras {
        field("Provides-Extra", extra);
    }
    for requirement in project.requires_dist() {
        field("Requires-Dist", &requirement);
    }
    if let Some(readme) = &project.readme {
        let kind = if readme.ends_with(".rst") { "text/x-rst" } else { "text/markdown" };
        field("Description-Content-Type", kind);
        let inside =
            Path::new(readme).components().all(|part| matches!(part, std::path::Component::Normal(_)));
        if !inside {
            let reason = format!("`project.readme` {readme:?} leads out of the package");
            return Err(PackageError::Project { path: top.join("pyproject.toml"), reason });
        }
        let file = Reader::default().read(top, readme.clone())?;
        text.push('\n');
        text.push_str(&String::from_utf8_lossy(&file.bytes));
    }
    Ok(text)
}

/// A licence in one line.
fn license(project: &Project) -> Option<String> {
    let text = match project.license.as_ref()? {
        Value::String(text) => text.clone(),
        Value::Table(table) => match table.get("text").and_then(Value::as_str) {
            Some(text) => text.to_owned(),
            None => format!("see {}", table.get("file").and_then(Value::as_str)?),
        },
        _ => return None,
    };
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}
