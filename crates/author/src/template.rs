//! A template: read from the library or a directory, and checked.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use aec_base::digest::{Digest, Hasher};
use aec_base::document::{Document, Family, Shared, Syntax, unreadable};
use aec_base::file::{Links, ReadError, read_text};
use aec_base::problem::Problem;
use aec_base::text;
use aec_task::long_documents::files::{self, LAMBDA_FILE, MAPPING_FILE, REPORT_FILE, RLM_FILE};
use aec_task::search::TemplateSummary;
use indexmap::IndexMap;
use semver::Version;

use crate::check;
use crate::expression::Expression;
use crate::grid::{Grid, Limit};
use crate::params::{ExampleTable, Givens, LookupTable, OutputTable, ParamKind, ParamsFile, ToolModes};
use crate::value::Value;

/// Ids of problems of templates begin with `P`.
pub const FAMILY: Family = Family('P');

/// The file that makes a directory a template.
pub const PARAMS_FILE: &str = "params.toml";
const REQUIRED: [&str; 3] = [PARAMS_FILE, "instruction.md", "engine.py"];
const OPTIONAL: [&str; 4] = ["verify.py", "system_prompt.md", "output_contract.json", "README.md"];
/// Settings of the long-document harnesses and their report template; they are copied into each instance unchanged.
pub(crate) const LONG_DOCUMENTS: [&str; 4] = [RLM_FILE, LAMBDA_FILE, REPORT_FILE, MAPPING_FILE];

/// A template consists of small text files.
const FILE_LIMIT: u64 = 1024 * 1024;
const MOST_FILES: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Built into the program.
    Library,
    Directory(PathBuf),
}

/// A valid template, except for tiers that have problems.
#[derive(Clone, Debug)]
pub struct Template {
    /// Kebab-case name.
    pub name: String,
    /// A new version gives new draws.
    pub version: Version,
    /// One line.
    pub description: String,
    /// A paragraph.
    pub long_description: String,
    /// First segment of task ids.
    pub discipline: String,
    /// Second segment of task ids.
    pub category: String,
    /// Standards that the tasks follow.
    pub standards: Vec<String>,
    /// Words for searching.
    pub tags: Vec<String>,
    /// Whether instances come with a calculator.
    pub tool_modes: ToolModes,
    /// The engine's parameters.
    pub params: IndexMap<String, Quantity>,
    pub outputs: IndexMap<String, OutputTable>,
    pub tiers: IndexMap<String, Tier>,
    pub origin: Origin,
    /// Digest of all its files.
    pub digest: Digest,
    /// Worked examples.
    pub examples: Vec<ExampleTable>,
    /// Typical situations by name.
    pub archetypes: IndexMap<String, Archetype>,
    pub(crate) auxiliary: IndexMap<String, Quantity>,
    pub(crate) tables: IndexMap<String, LookupTable>,
    pub(crate) constraints: Vec<Expression>,
    pub(crate) files: BTreeMap<String, String>,
}

/// A parameter or auxiliary quantity.
#[derive(Clone, Debug)]
pub struct Quantity {
    pub kind: ParamKind,
    pub description: String,
    pub unit: Option<String>,
    /// The usual value.
    pub default: Option<Value>,
    pub(crate) grid: Grid,
    /// The value if a tier switches it off.
    pub(crate) off: Option<Value>,
    pub(crate) from_archetype: bool,
}

/// A typical situation.
#[derive(Clone, Debug)]
pub struct Archetype {
    pub description: String,
    pub(crate) sites: Vec<String>,
    pub(crate) limits: IndexMap<String, Limit>,
}

/// A tier of difficulty.
#[derive(Clone, Debug)]
pub struct Tier {
    pub name: String,
    /// What makes it different.
    pub description: String,
    /// How many of the given values the prompt shows.
    pub givens: Givens,
    /// Problems that make it unusable.
    pub problems: Vec<Problem>,
    /// The outputs that it asks for, in order.
    pub outputs: Vec<String>,
    pub(crate) archetypes: Vec<String>,
    pub(crate) limits: IndexMap<String, Limit>,
    pub(crate) off: Vec<String>,
    pub(crate) derived: IndexMap<String, Derivation>,
    pub(crate) units: IndexMap<String, String>,
    pub(crate) auxiliary: Vec<String>,
    pub(crate) replacement_text: Option<String>,
}

/// How a hidden parameter is derived.
#[derive(Clone, Debug)]
pub(crate) enum Derivation {
    Rule(Expression),
    Table(String),
    /// From a printed table of archetypes.
    Archetype,
}

impl Template {
    pub fn read(directory: &Path) -> Result<Self, Vec<Problem>> {
        let files = read_files(directory)?;
        Self::from_files(files, Origin::Directory(directory.to_path_buf()))
    }

    /// Parses and checks the files of a template.
    pub fn from_files(files: BTreeMap<String, String>, origin: Origin) -> Result<Self, Vec<Problem>> {
        let place = |name: &str| match &origin {
            Origin::Library => PathBuf::from(name),
            Origin::Directory(directory) => directory.join(name),
        };
        let mut problems = Vec::new();
        for name in REQUIRED {
            if !files.contains_key(name) {
                problems.push(unreadable(&place(name), &ReadError::Missing, FAMILY));
            }
        }
        problems.extend(strangers(files.keys()).map(|name| {
            Problem::error(format!("a template has no file `{}`", text::printable(name)))
                .id(FAMILY.number(10))
                .why("it would have no effect")
                .fix("remove it; Python modules belong beside engine.py, the reference solution in solution/")
                .in_file(place(name))
        }));
        problems.extend(long_documents(&files).into_iter().map(|problem| {
            let file = problem.file.as_ref().map(|file| place(&file.to_string_lossy()));
            Problem { file, ..problem }
        }));
        let Some(source) = files.get(PARAMS_FILE) else { return Err(problems) };
        let path = place(PARAMS_FILE);
        let document = match Document::parse(&path, source.clone(), Syntax::Toml, FAMILY) {
            Ok(document) => document,
            Err(syntax) => {
                problems.extend(syntax);
                return Err(problems);
            }
        };
        let decoded = document.decode::<ParamsFile>();
        problems.extend(decoded.problems.iter().cloned());
        let Some(file) = &decoded.value else { return Err(problems) };
        let digest = digest(&files);
        let (template, found) = check::understand(&document, file, files, origin, digest);
        // A faulty key has been removed, so errors about its absence are left out.
        problems.extend(found.into_iter().filter(|problem| {
            decoded.problems.is_empty()
                || problem.id.as_deref() != Some(FAMILY.id(Shared::MissingKey).as_str())
        }));
        match template {
            Some(template) if problems.is_empty() => Ok(template),
            _ => Err(problems),
        }
    }

    /// `discipline/name`.
    pub fn path(&self) -> String {
        format!("{}/{}", self.discipline, self.name)
    }

    pub fn file(&self, name: &str) -> Option<&str> {
        self.files.get(name).map(String::as_str)
    }

    /// The engine and its modules, by name.
    pub(crate) fn modules(&self) -> BTreeMap<&str, &str> {
        let is_module = |name: &str| name.ends_with(".py") && !name.contains('/') && name != "verify.py";
        self.files
            .iter()
            .filter(|(name, _)| is_module(name))
            .map(|(name, source)| (name.as_str(), source.as_str()))
            .collect()
    }

    /// A parameter or auxiliary quantity by name.
    pub(crate) fn quantity(&self, name: &str) -> Option<&Quantity> {
        self.params.get(name).or_else(|| self.auxiliary.get(name))
    }

    /// A problem of the template as a whole.
    pub(crate) fn problem(&self, number: u32, what: impl Into<String>) -> Problem {
        let problem = Problem::error(what).id(FAMILY.number(number)).about(self.path());
        match &self.origin {
            Origin::Library => problem,
            Origin::Directory(directory) => problem.in_file(directory),
        }
    }
}

impl Tier {
    /// The quantities that the prompt prints, in order: parameters, then auxiliary ones.
    pub(crate) fn printed<'a>(&'a self, template: &'a Template) -> impl Iterator<Item = &'a str> {
        template
            .params
            .keys()
            .filter(|name| !self.derived.contains_key(*name))
            .chain(&self.auxiliary)
            .map(String::as_str)
    }
}

/// Digest of names and contents, each preceded by its length, so that no two templates share one.
fn digest(files: &BTreeMap<String, String>) -> Digest {
    let mut hasher = Hasher::default();
    for (name, content) in files {
        hasher.part(name.as_bytes());
        hasher.part(content.as_bytes());
    }
    hasher.finish()
}

/// Problems of the files for the long-document harnesses. The files that they name are made with each instance.
fn long_documents(files: &BTreeMap<String, String>) -> Vec<Problem> {
    struct Texts<'a>(&'a BTreeMap<String, String>);
    impl files::Texts for Texts<'_> {
        fn text(&self, path: &str) -> Result<Option<String>, Problem> {
            Ok(self.0.get(path).cloned())
        }
    }
    let exists = |path: &str| files.contains_key(path) || !LONG_DOCUMENTS.contains(&path);
    let mut problems = files::check(&Texts(files), &exists);
    problems.retain(Problem::counts);
    problems
}

fn strangers<'a>(names: impl Iterator<Item = &'a String>) -> impl Iterator<Item = &'a str> {
    names.map(String::as_str).filter(|name| {
        !(REQUIRED.contains(name)
            || OPTIONAL.contains(name)
            || LONG_DOCUMENTS.contains(name)
            || name.starts_with("solution/")
            || (name.ends_with(".py") && !name.contains('/')))
    })
}

fn read_files(directory: &Path) -> Result<BTreeMap<String, String>, Vec<Problem>> {
    let mut files = BTreeMap::new();
    let mut problems = Vec::new();
    if !directory.is_dir() {
        let problem = Problem::error("there is no such template directory").id(FAMILY.id(Shared::Unreadable));
        return Err(vec![problem.fix("name a directory that has a params.toml").in_file(directory)]);
    }
    collect(directory, "", &mut files, &mut problems);
    if problems.is_empty() { Ok(files) } else { Err(problems) }
}

fn collect(
    directory: &Path,
    prefix: &str,
    files: &mut BTreeMap<String, String>,
    problems: &mut Vec<Problem>,
) {
    let failed = |error: &io::Error| {
        Problem::error(error.to_string())
            .id(FAMILY.id(Shared::Unreadable))
            .fix("check the path and its permissions")
            .in_file(directory)
    };
    let entries = match fs_err::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) => return problems.push(failed(&error)),
    };
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == "__pycache__" || name.starts_with('.') {
            continue;
        }
        let place = format!("{prefix}{name}");
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            // Only solution/ has subdirectories; a deeper tree is not a template.
            if prefix.matches('/').count() < 3 {
                collect(&entry.path(), &format!("{place}/"), files, problems);
            }
            continue;
        }
        if files.len() == MOST_FILES {
            let what = format!("a template has at most {MOST_FILES} files");
            return problems.push(
                Problem::error(what)
                    .id(FAMILY.id(Shared::Unreadable))
                    .fix("keep templates small")
                    .in_file(directory),
            );
        }
        match read_text(&entry.path(), FILE_LIMIT, Links::Refuse) {
            Ok(content) => {
                files.insert(place, content);
            }
            Err(error) => problems.push(unreadable(&entry.path(), &error, FAMILY)),
        }
    }
}

impl From<&Template> for TemplateSummary {
    fn from(template: &Template) -> Self {
        Self {
            name: template.path(),
            description: template.description.clone(),
            long_description: template.long_description.clone(),
            discipline: template.discipline.clone(),
            category: template.category.clone(),
            standards: template.standards.clone(),
            tags: template.tags.clone(),
            path: match &template.origin {
                Origin::Library => PathBuf::new(),
                Origin::Directory(directory) => directory.clone(),
            },
        }
    }
}
