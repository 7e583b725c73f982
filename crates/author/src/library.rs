//! All available templates: those built into the program and those in directories.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use aec_base::document::{Document, Syntax};
use aec_base::parallel;
use aec_base::problem::Problem;
use aec_base::text;
use indexmap::IndexMap;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::params::MetaTable;
use crate::template::{FAMILY, Origin, PARAMS_FILE, Template};

/// How deep below a root to look for templates.
const MAX_DEPTH: usize = 4;
/// Templates that a core reads at a time.
const SMALL: usize = 4;

#[derive(rust_embed::Embed)]
#[folder = "../../library"]
struct Embedded;

/// What a list shows of a template.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Its `[meta]` table.
    pub meta: MetaTable,
    /// Names of its tiers.
    pub tiers: Vec<String>,
    pub origin: Origin,
}

/// The part of `params.toml` that a list needs.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Head {
    meta: MetaTable,
    difficulty: IndexMap<String, IgnoredAny>,
}

/// Templates by `discipline/name`, and the problems of unusable ones.
#[derive(Debug, Default)]
pub struct Library {
    /// Usable templates, sorted by discipline and name.
    pub templates: Vec<Template>,
    /// Problems of the others.
    pub problems: Vec<Problem>,
}

impl Library {
    /// Loads the built-in templates and those below some roots. A template in a directory replaces a built-in one of
    /// the same name.
    pub fn load(roots: &[PathBuf]) -> Self {
        let mut sources: Vec<Source> = embedded().into_values().map(Source::Embedded).collect();
        sources.extend(directories(roots));
        Self::from_sources(&sources)
    }

    fn from_sources(sources: &[Source]) -> Self {
        let mut library = Self::default();
        let mut templates: BTreeMap<String, Template> = BTreeMap::new();
        for result in parallel::map(sources, SMALL, Source::read) {
            let template = match result {
                Ok(template) => template,
                Err(problems) => {
                    library.problems.extend(problems);
                    continue;
                }
            };
            match templates.get(&template.path()) {
                Some(other) if other.origin != Origin::Library => library.problems.push(
                    template
                        .problem(30, format!("there are two templates `{}`", template.path()))
                        .fix("rename one of them"),
                ),
                _ => {
                    templates.insert(template.path(), template);
                }
            }
        }
        library.templates = templates.into_values().collect();
        library
    }

    /// What lists show of the templates. The built-in ones are known to be valid, so they are not checked again.
    pub fn list(roots: &[PathBuf]) -> (Vec<Listed>, Vec<Problem>) {
        let paths: Vec<String> =
            Embedded::iter().filter(|path| path.ends_with(PARAMS_FILE)).map(Into::into).collect();
        let built_in = parallel::map(&paths, SMALL, |path| {
            let text = String::from_utf8_lossy(&Embedded::get(path)?.data).into_owned();
            let document = Document::parse(Path::new(path), text, Syntax::Toml, FAMILY).ok()?;
            let Head { meta, difficulty } = document.decode().value?;
            Some(Listed { meta, tiers: difficulty.into_keys().collect(), origin: Origin::Library })
        });
        let own = Self::from_sources(&directories(roots));
        let mut listed: BTreeMap<(String, String), Listed> = BTreeMap::new();
        let mine = own.templates.into_iter().map(|template| Listed {
            meta: MetaTable {
                name: template.name,
                version: Some(template.version.to_string()),
                description: template.description,
                long_description: template.long_description,
                discipline: template.discipline,
                category: template.category,
                standards: template.standards,
                tags: template.tags,
                tool_mode: Some(template.tool_modes),
            },
            tiers: template.tiers.into_keys().collect(),
            origin: template.origin,
        });
        for one in built_in.into_iter().flatten().chain(mine) {
            listed.insert((one.meta.discipline.clone(), one.meta.name.clone()), one);
        }
        (listed.into_values().collect(), own.problems)
    }

    /// The template that the user names: `name` or `discipline/name`.
    pub fn find(&self, name: &str) -> Result<&Template, Box<Problem>> {
        let fits = |template: &&Template| template.name == name || template.path() == name;
        let found: Vec<&Template> = self.templates.iter().filter(fits).collect();
        match found.as_slice() {
            [one] => Ok(one),
            [] => {
                let names: Vec<String> = self
                    .templates
                    .iter()
                    .flat_map(|template| [template.name.clone(), template.path()])
                    .collect();
                let problem = Problem::error(format!("there is no template `{}`", text::printable(name)))
                    .id(FAMILY.number(31));
                Err(Box::new(problem.fix(text::near_or(
                    name,
                    &names,
                    "see `aec-bench generate list-templates`",
                ))))
            }
            several => {
                let paths: Vec<String> = several.iter().map(|template| template.path()).collect();
                let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
                Err(Box::new(
                    Problem::error(format!("several templates are called `{name}`"))
                        .id(FAMILY.number(31))
                        .fix(format!("name {}", text::one_of(&paths))),
                ))
            }
        }
    }

    /// A built-in template with exactly these files.
    pub(crate) fn embedded_with(path: &str, digest: aec_base::digest::Digest) -> Option<Template> {
        let files = embedded().remove(path)?;
        Template::from_files(files, Origin::Library).ok().filter(|template| template.digest == digest)
    }
}

enum Source {
    Embedded(BTreeMap<String, String>),
    Directory(PathBuf),
}

impl Source {
    fn read(&self) -> Result<Template, Vec<Problem>> {
        match self {
            Self::Embedded(files) => Template::from_files(files.clone(), Origin::Library),
            Self::Directory(directory) => Template::read(directory),
        }
    }
}

fn directories(roots: &[PathBuf]) -> Vec<Source> {
    let mut sources = Vec::new();
    for root in roots {
        let mut found = Vec::new();
        collect(root, 0, &mut found);
        found.sort();
        sources.extend(found.into_iter().map(Source::Directory));
    }
    sources
}

/// The files of the built-in templates by `discipline/name`.
fn embedded() -> BTreeMap<String, BTreeMap<String, String>> {
    let mut templates: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for path in Embedded::iter() {
        let mut parts = path.splitn(3, '/');
        let (Some(discipline), Some(name), Some(file)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let Some(content) = Embedded::get(&path) else { continue };
        let text = String::from_utf8_lossy(&content.data).into_owned();
        templates.entry(format!("{discipline}/{name}")).or_default().insert(file.to_owned(), text);
    }
    templates
}

fn collect(directory: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    if directory.join(PARAMS_FILE).is_file() {
        found.push(directory.to_path_buf());
        return;
    }
    if depth == MAX_DEPTH {
        return;
    }
    let Ok(entries) = fs_err::read_dir(directory) else { return };
    for entry in entries.filter_map(Result::ok) {
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if !hidden && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect(&entry.path(), depth + 1, found);
        }
    }
}
