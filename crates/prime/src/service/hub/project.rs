//! Reads `pyproject.toml` of a package.

use std::path::Path;

use aec_base::document::toml_table;
use toml::{Table, Value};

use super::package::PackageError;

/// The parts of `pyproject.toml` that publishing needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Project {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) description: String,
    pub(crate) readme: Option<String>,
    pub(crate) requires_python: Option<String>,
    pub(crate) license: Option<Value>,
    pub(crate) tags: Vec<String>,
    pub(crate) keywords: Vec<String>,
    pub(crate) classifiers: Vec<String>,
    pub(crate) dependencies: Vec<String>,
    pub(crate) extras: Vec<(String, Vec<String>)>,
    pub(crate) urls: Vec<(String, String)>,
    pub(crate) entry_points: Vec<EntryPoints>,
    pub(crate) selection: Selection,
}

/// A group of entry points: its name, and each entry with its target.
pub(crate) type EntryPoints = (String, Vec<(String, String)>);

/// Which files belong in the wheel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selection {
    /// Directories that become packages named after their last part.
    pub(crate) packages: Vec<String>,
    /// Patterns of files that keep their path.
    pub(crate) include: Vec<String>,
    /// Patterns of files to leave out.
    pub(crate) exclude: Vec<String>,
    pub(crate) modules: Vec<String>,
}

impl Project {
    pub(crate) fn read(top: &Path) -> Result<Self, PackageError> {
        let path = top.join("pyproject.toml");
        let text = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(PackageError::NoProject { path });
            }
            Err(source) => return Err(PackageError::Unreadable { path, source }),
        };
        let bad = |reason: String| PackageError::Project { path: path.clone(), reason };
        let text = String::from_utf8(text).map_err(|_| bad("it is not UTF-8 text".to_owned()))?;
        Self::parse(&text).map_err(bad)
    }

    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let root = toml_table(text).map_err(|error| error.to_string().trim_end().to_owned())?;
        let project = root.get("project").and_then(Value::as_table).ok_or("there is no [project] table")?;
        let table = Section { place: "project", table: project };
        let dynamic = table.list("dynamic")?;
        if !dynamic.is_empty() {
            return Err(format!(
                "`project.dynamic` asks for {} from a build program; write it into [project] instead",
                dynamic.join(", ")
            ));
        }
        let name = table.text("name")?.ok_or("`project.name` is missing")?;
        if !is_package_name(&name) {
            return Err(format!(
                "`project.name` {name:?} is not a package name: use letters, digits, `.`, `_`, `-`"
            ));
        }
        let version = table.text("version")?.ok_or("`project.version` is missing")?;
        if !is_version(&version) {
            return Err(format!(
                "`project.version` {version:?} is not in normal form, such as 1.2.0, 1.2.0rc1 or 1.2.0.post1"
            ));
        }
        let readme = match project.get("readme") {
            Some(Value::Table(readme)) => Section { place: "project.readme", table: readme }.text("file")?,
            _ => table.text("readme")?,
        };
        let license = project.get("license").cloned();
        if !matches!(license, None | Some(Value::String(_) | Value::Table(_))) {
            return Err("`project.license` must be a string or a table".to_owned());
        }
        Ok(Self {
            description: table.line("description")?.unwrap_or_default(),
            requires_python: table.line("requires-python")?,
            tags: table.list("tags")?,
            keywords: table.lines("keywords")?,
            classifiers: table.lines("classifiers")?,
            dependencies: table.lines("dependencies")?,
            extras: extras(&table)?,
            urls: table.pairs("urls")?,
            entry_points: entry_points(&table)?,
            selection: Selection::read(&root)?,
            name,
            version,
            readme,
            license,
        })
    }

    /// The name as it appears in file names.
    pub(crate) fn file_name(&self) -> String {
        let mut name = String::new();
        for c in self.name.to_lowercase().chars() {
            let c = if matches!(c, '-' | '.') { '_' } else { c };
            if c != '_' || !name.ends_with('_') {
                name.push(c);
            }
        }
        name
    }

    /// Requirements in the format of a wheel: sorted, without unnecessary blanks.
    pub(crate) fn requires_dist(&self) -> Vec<String> {
        let mut all: Vec<String> = self.dependencies.iter().map(|text| tidy(text)).collect();
        all.sort_unstable();
        for (extra, requirements) in &self.extras {
            let mut own: Vec<String> =
                requirements.iter().map(|text| for_extra(&tidy(text), extra)).collect();
            own.sort_unstable();
            all.append(&mut own);
        }
        all
    }
}

fn extras(project: &Section<'_>) -> Result<Vec<(String, Vec<String>)>, String> {
    let Some(table) = project.section("optional-dependencies")? else { return Ok(Vec::new()) };
    let section = Section { place: "project.optional-dependencies", table };
    table.keys().map(|extra| Ok((extra.clone(), section.lines(extra)?))).collect()
}

fn entry_points(project: &Section<'_>) -> Result<Vec<EntryPoints>, String> {
    let mut groups = Vec::new();
    for (key, group) in [("scripts", "console_scripts"), ("gui-scripts", "gui_scripts")] {
        let entries = project.pairs(key)?;
        if !entries.is_empty() {
            groups.push((group.to_owned(), entries));
        }
    }
    if let Some(table) = project.section("entry-points")? {
        let section = Section { place: "project.entry-points", table };
        for group in table.keys() {
            groups.push((group.clone(), section.pairs(group)?));
        }
    }
    Ok(groups)
}

impl Selection {
    fn read(root: &Table) -> Result<Self, String> {
        let mut selection = Self::default();
        let Some(tool) = root.get("tool").and_then(Value::as_table) else { return Ok(selection) };
        let build = at(tool, &["hatch", "build"]);
        let wheel = at(tool, &["hatch", "build", "targets", "wheel"]);
        for (place, table) in [("tool.hatch.build", build), ("tool.hatch.build.targets.wheel", wheel)] {
            let Some(table) = table else { continue };
            let section = Section { place, table };
            // The wheel's own settings override those of all builds.
            for (key, list) in [
                ("packages", &mut selection.packages),
                ("include", &mut selection.include),
                ("exclude", &mut selection.exclude),
            ] {
                let given = section.list(key)?;
                if !given.is_empty() {
                    *list = given;
                }
            }
            let known = ["packages", "include", "exclude", "targets", "directory", "reproducible"];
            if let Some(key) = table.keys().find(|key| !known.contains(&key.as_str())) {
                return Err(format!(
                    "`{place}.{key}` needs the Python build program; remove it, or push with `prime env push`"
                ));
            }
        }
        if let Some(table) = at(tool, &["setuptools"]) {
            let section = Section { place: "tool.setuptools", table };
            selection.modules = section.list("py-modules")?;
            if let Some(Value::Array(_)) = table.get("packages") {
                let packages = section.list("packages")?;
                selection.packages.extend(packages.iter().map(|package| package.replace('.', "/")));
            }
            let known = ["packages", "py-modules"];
            if let Some(key) = table.keys().find(|key| !known.contains(&key.as_str())) {
                return Err(format!(
                    "`tool.setuptools.{key}` needs the Python build program; remove it, or push with `prime env push`"
                ));
            }
        }
        for path in selection.packages.iter().chain(&selection.modules) {
            let inside = path.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
            if !inside || path.contains('\\') {
                return Err(format!("{path:?} in the build settings leads out of the package"));
            }
        }
        Ok(selection)
    }
}

fn at<'a>(table: &'a Table, path: &[&str]) -> Option<&'a Table> {
    path.iter().try_fold(table, |table, key| table.get(*key)?.as_table())
}

/// A table with its place, for messages.
struct Section<'a> {
    place: &'static str,
    table: &'a Table,
}

impl Section<'_> {
    fn wrong(&self, key: &str, expected: &str) -> String {
        format!("`{}.{key}` must be {expected}", self.place)
    }

    fn text(&self, key: &str) -> Result<Option<String>, String> {
        match self.table.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(self.wrong(key, "a string")),
        }
    }

    /// A text that becomes a line of the metadata, where a line break would start another field.
    fn line(&self, key: &str) -> Result<Option<String>, String> {
        let text = self.text(key)?;
        match text {
            Some(text) if text.chars().any(char::is_control) => Err(self.wrong(key, "one line")),
            text => Ok(text),
        }
    }

    fn list(&self, key: &str) -> Result<Vec<String>, String> {
        match self.table.get(key) {
            None => Ok(Vec::new()),
            Some(Value::Array(values)) => values
                .iter()
                .map(|value| value.as_str().map(str::to_owned))
                .collect::<Option<_>>()
                .ok_or_else(|| self.wrong(key, "a list of strings")),
            Some(_) => Err(self.wrong(key, "a list of strings")),
        }
    }

    fn lines(&self, key: &str) -> Result<Vec<String>, String> {
        let list = self.list(key)?;
        if list.iter().any(|text| text.chars().any(char::is_control)) {
            return Err(self.wrong(key, "a list of strings of one line each"));
        }
        Ok(list)
    }

    fn section(&self, key: &str) -> Result<Option<&Table>, String> {
        match self.table.get(key) {
            None => Ok(None),
            Some(Value::Table(table)) => Ok(Some(table)),
            Some(_) => Err(self.wrong(key, "a table")),
        }
    }

    fn pairs(&self, key: &str) -> Result<Vec<(String, String)>, String> {
        let Some(table) = self.section(key)? else { return Ok(Vec::new()) };
        let pair = |(name, value): (&String, &Value)| match value {
            Value::String(text) if !format!("{name}{text}").chars().any(char::is_control) => {
                Ok((name.clone(), text.clone()))
            }
            _ => Err(self.wrong(key, "a table of strings of one line each")),
        };
        table.iter().map(pair).collect()
    }
}

fn is_package_name(name: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    edge(name.chars().next()) && edge(name.chars().last()) && name.chars().all(inner)
}

/// Whether a version is in the normal form of Python packages, so that file names can contain it unchanged.
fn is_version(version: &str) -> bool {
    let number = |text: &str| {
        !text.is_empty()
            && text.bytes().all(|byte| byte.is_ascii_digit())
            && (text == "0" || !text.starts_with('0'))
    };
    let (public, local) = match version.split_once('+') {
        Some((public, local)) => (public, Some(local)),
        None => (version, None),
    };
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if local.is_some_and(|local| !local.split('.').all(|part| !part.is_empty() && part.chars().all(plain))) {
        return false;
    }
    let mut rest = public;
    for marker in [".dev", ".post"] {
        if let Some((before, after)) = rest.rsplit_once(marker) {
            if !number(after) {
                return false;
            }
            rest = before;
        }
    }
    for marker in ["rc", "a", "b"] {
        if let Some((before, after)) = rest.rsplit_once(marker) {
            if !number(after) {
                return false;
            }
            rest = before;
            break;
        }
    }
    rest.split('.').all(number)
}

/// A requirement without blanks around its operators; markers and addresses keep theirs.
fn tidy(requirement: &str) -> String {
    let (what, marker) = match requirement.split_once(';') {
        Some((what, marker)) => (what, Some(marker.trim())),
        None => (requirement, None),
    };
    let what = if what.contains('@') {
        what.split_whitespace().collect::<Vec<_>>().join(" ")
    } else {
        what.split_whitespace().collect::<String>()
    };
    match marker {
        Some(marker) => format!("{what}; {marker}"),
        None => what,
    }
}

fn for_extra(requirement: &str, extra: &str) -> String {
    match requirement.split_once(';') {
        Some((what, marker)) => format!("{what}; ({}) and extra == '{extra}'", marker.trim()),
        None => format!("{requirement}; extra == '{extra}'"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_in_normal_form() {
        for good in
            ["0", "1.2.3", "1.0rc1", "1.0a0", "2.1.post3", "1.0.dev4", "1.0b2.post1.dev0", "1.0+abc.1"]
        {
            assert!(is_version(good), "{good}");
        }
        for bad in ["", "1.", "v1", "1.0-rc1", "01.2", "1.0+", "1.0.post", "1..2", "1.0RC1", "1/2", "1.0\n"] {
            assert!(!is_version(bad), "{bad}");
        }
    }

    #[test]
    fn requirements_are_tidied_and_sorted() {
        let text = "[project]\nname = 'A.b--C'\nversion = '1.0'\n\
                    dependencies = ['verifiers >= 0.1.10', 'datasets>=4.0 ; python_version > \"3.9\"']\n\
                    [project.optional-dependencies]\ndev = ['pytest >=8']\n";
        let project = Project::parse(text).unwrap();
        assert_eq!(project.file_name(), "a_b_c");
        assert_eq!(
            project.requires_dist(),
            ["datasets>=4.0; python_version > \"3.9\"", "verifiers>=0.1.10", "pytest>=8; extra == 'dev'"]
        );
    }

    #[test]
    fn what_cannot_be_built_here_is_named() {
        let with = |tail: &str| format!("[project]\nname = 'a'\nversion = '1.0'\n{tail}");
        let cases = [
            (String::new(), "no [project]"),
            ("[project]\nversion = '1'".to_owned(), "`project.name` is missing"),
            ("[project]\nname = 'a'".to_owned(), "`project.version` is missing"),
            ("[project]\nname = '../a'\nversion = '1'".to_owned(), "not a package name"),
            (with("dynamic = ['version']"), "project.dynamic"),
            (with("dependencies = 'x'"), "`project.dependencies` must be a list"),
            (with("description = \"a\\nName: evil\""), "must be one line"),
            (with("dependencies = [\"x\\nName: evil\"]"), "one line each"),
            (with("[tool.hatch.build.targets.wheel]\npackages = ['../up']"), "leads out"),
            (with("[tool.hatch.build.targets.wheel]\npackages = ['/etc']"), "leads out"),
            (with("[tool.hatch.build.hooks.custom]\n"), "tool.hatch.build.hooks"),
            (with("[tool.setuptools.package-data]\n"), "tool.setuptools.package-data"),
            ("[project".to_owned(), "line 1"),
            (with("name = 'twice'"), "duplicate key"),
        ];
        for (text, expected) in cases {
            let error = Project::parse(&text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
