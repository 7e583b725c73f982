//! Seeds: notes on proposed tasks, in `paths.seeds`, one file each.
//!
//! A note is Markdown, or JSON that another tool writes (`source_task.json`).

use std::path::{Path, PathBuf};

use aec_base::document::{Document, Family, Shared, Syntax, unreadable};
use aec_base::file::{Links, read_text};
use aec_base::name;
use aec_base::problem::Problem;
use aec_base::text;
use serde::Deserialize;

use crate::task::DISCIPLINES;

/// Ids of problems of seeds begin with `N`.
pub const FAMILY: Family = Family('N');

const NOTE_LIMIT: u64 = 256 * 1024;

/// A proposed task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seed {
    pub id: String,
    /// Engineering discipline.
    pub discipline: String,
    pub title: String,
    pub description: String,
    /// Standards to follow.
    pub standards: Vec<String>,
    /// What the task would give.
    pub inputs: Vec<String>,
    /// What the task would ask for.
    pub outputs: Vec<String>,
    /// `low`, `medium` or `high`.
    pub complexity: Option<String>,
    pub path: PathBuf,
}

/// `source_task.json`. Written by a program, so unknown keys are allowed.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SeedFile {
    source: SourceTable,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SourceTable {
    discipline: String,
    task_id: String,
    task_name: String,
    description: String,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    standards: Vec<String>,
    complexity: Option<String>,
}

/// An input or output: a text, or a table with name and unit.
#[derive(Debug)]
struct Port(String);

impl<'de> Deserialize<'de> for Port {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> serde::de::Visitor<'de> for Reader {
            type Value = Port;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a text, or a table with `name` and `unit`")
            }

            fn visit_str<E>(self, text: &str) -> Result<Port, E> {
                Ok(Port(text.to_owned()))
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut entries: A) -> Result<Port, A::Error> {
                let (mut name, mut unit) = (String::new(), String::new());
                while let Some(key) = entries.next_key::<String>()? {
                    let value: serde_json::Value = entries.next_value()?;
                    let text = value.as_str().unwrap_or_default();
                    match key.as_str() {
                        "name" => text.clone_into(&mut name),
                        "unit" => text.clone_into(&mut unit),
                        _ => {}
                    }
                }
                Ok(Port(if unit.is_empty() { name } else { format!("{name} [{unit}]") }))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

/// All seeds below a root, and the problems of files that are not valid notes.
pub fn seeds(root: &Path) -> (Vec<Seed>, Vec<Problem>) {
    let mut paths = Vec::new();
    collect(root, 0, &mut paths);
    paths.sort();
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    for path in paths {
        match Seed::read(&path) {
            Ok(seed) => found.push(seed),
            Err(wrong) => problems.extend(wrong),
        }
    }
    (found, problems)
}

/// The seed that the user names: by path, or by the name of a note below the root.
pub fn find(root: &Path, name: &str) -> Result<Seed, Vec<Problem>> {
    let direct = Path::new(name);
    if direct.is_file() {
        return Seed::read(direct);
    }
    let (seeds, _) = seeds(root);
    let stem = |seed: &Seed| {
        seed.path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
    };
    if let Some(seed) = seeds.iter().find(|seed| seed.id == name || stem(seed) == name) {
        return Ok(seed.clone());
    }
    let names: Vec<&str> = seeds.iter().map(|seed| seed.id.as_str()).collect();
    let problem = Problem::error(format!("there is no seed `{}`", text::printable(name)))
        .id(FAMILY.number(10))
        .in_file(root);
    Err(vec![match text::nearest(name, names) {
        Some(near) => problem.fix(format!("did you mean `{near}`?")),
        None => problem.fix("put a note there, such as seeds/weir-flow.md"),
    }])
}

fn collect(directory: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    const MAX_DEPTH: usize = 4;
    let Ok(entries) = fs_err::read_dir(directory) else { return };
    for entry in entries.filter_map(Result::ok) {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_note = path.extension().is_some_and(|extension| extension == "md" || extension == "json");
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth < MAX_DEPTH && !name.starts_with('.') => {
                collect(&path, depth + 1, found);
            }
            Ok(kind) if kind.is_file() && is_note && !name.eq_ignore_ascii_case("readme.md") => {
                found.push(path);
            }
            _ => {}
        }
    }
}

impl Seed {
    pub fn read(path: &Path) -> Result<Self, Vec<Problem>> {
        let text = read_text(path, NOTE_LIMIT, Links::Follow)
            .map_err(|error| vec![unreadable(path, &error, FAMILY)])?;
        let seed = if path.extension().is_some_and(|extension| extension == "json") {
            Self::from_json(path, text)?
        } else {
            Self::from_markdown(path, &text)
        };
        let wrong = |what: &str, fix: &str| {
            Err(vec![Problem::error(what).id(FAMILY.id(Shared::BadValue)).fix(fix.to_owned()).in_file(path)])
        };
        if name::check(&seed.id).is_err() {
            return wrong("the seed's name cannot be part of a task id", "use letters, digits, `-` and `_`");
        }
        if seed.description.trim().is_empty() {
            return wrong("the seed says nothing", "write what the task is about");
        }
        Ok(seed)
    }

    fn from_json(path: &Path, text: String) -> Result<Self, Vec<Problem>> {
        let document = Document::parse(path, text, Syntax::Json, FAMILY)?;
        let decoded = document.decode::<SeedFile>();
        let Some(SeedFile { source }) = decoded.value.filter(|_| decoded.problems.is_empty()) else {
            return Err(decoded.problems);
        };
        let stem = stem(path);
        let id = if source.task_id.is_empty() { stem } else { source.task_id };
        let ports =
            |ports: Vec<Port>| ports.into_iter().map(|port| port.0).filter(|port| !port.is_empty()).collect();
        Ok(Self {
            title: if source.task_name.is_empty() { words(&id) } else { source.task_name },
            id,
            discipline: source.discipline.to_lowercase(),
            description: source.description,
            standards: source.standards,
            inputs: ports(source.inputs),
            outputs: ports(source.outputs),
            complexity: source.complexity,
            path: path.to_path_buf(),
        })
    }

    /// The first heading is the title; lists under headings such as "Inputs" are inputs, outputs and standards; the
    /// rest is the description. The discipline is a directory of the path, or a word of the text.
    fn from_markdown(path: &Path, text: &str) -> Self {
        let id = stem(path);
        let mut seed = Self {
            title: words(&id),
            id,
            discipline: String::new(),
            description: String::new(),
            standards: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            complexity: None,
            path: path.to_path_buf(),
        };
        let mut section = String::new();
        let mut titled = false;
        for line in text.lines() {
            if let Some(heading) = line.strip_prefix('#') {
                let heading = heading.trim_start_matches('#').trim();
                if titled {
                    section = heading.to_lowercase();
                } else {
                    heading.clone_into(&mut seed.title);
                    titled = true;
                }
                continue;
            }
            let item = line.trim_start().strip_prefix(['-', '*']).map(|item| item.trim().to_owned());
            match (section.as_str(), item) {
                ("inputs" | "given" | "givens", Some(item)) => seed.inputs.push(item),
                ("outputs" | "asked" | "answers", Some(item)) => seed.outputs.push(item),
                ("standards", Some(item)) => seed.standards.push(item),
                _ => seed.description.push_str(&format!("{line}\n")),
            }
        }
        seed.description = seed.description.trim().into();
        let in_path = path.components().filter_map(|part| part.as_os_str().to_str());
        let words = text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
        let found = in_path.map(str::to_owned).chain(words).find(|word| DISCIPLINES.contains(&word.as_str()));
        seed.discipline = found.unwrap_or_default();
        seed
    }
}

fn stem(path: &Path) -> String {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    // The other tool gives every note the same file name; the directory has the actual name.
    if stem == "source_task" {
        let parent = path.parent().and_then(Path::file_name);
        return parent.map(|name| name.to_string_lossy().into_owned()).unwrap_or(stem);
    }
    stem
}

fn words(id: &str) -> String {
    let words = id.replace(['-', '_'], " ");
    let mut letters = words.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_in_both_forms() {
        let root = tempfile::tempdir().unwrap();
        let note = "# Weir flow\n\nFlow over a sharp weir, civil works.\n\n## Inputs\n- head\n- width\n\n## Outputs\n- flow\n";
        fs_err::write(root.path().join("weir-flow.md"), note).unwrap();
        let json = r#"{"status": "proposed", "source": {"discipline": "Ground", "task_id": "raft", "task_name": "Raft",
            "description": "A raft.", "inputs": ["load", {"name": "width", "unit": "m", "type": "float"}], "outputs": []}}"#;
        fs_err::create_dir(root.path().join("raft")).unwrap();
        fs_err::write(root.path().join("raft/source_task.json"), json).unwrap();
        fs_err::write(root.path().join("empty.md"), "").unwrap();
        let (seeds, problems) = seeds(root.path());
        assert_eq!(problems.len(), 1);
        let [raft, weir] = seeds.as_slice() else { panic!("{seeds:?}") };
        assert_eq!((raft.id.as_str(), raft.discipline.as_str(), raft.inputs.len()), ("raft", "ground", 2));
        assert_eq!(raft.inputs[1], "width [m]");
        assert_eq!((weir.title.as_str(), weir.discipline.as_str()), ("Weir flow", "civil"));
        assert_eq!((weir.inputs.len(), weir.outputs.len()), (2, 1));
        assert_eq!(find(root.path(), "weir-flow").unwrap(), *weir);
        assert!(find(root.path(), "weir-flwo").unwrap_err()[0].fix.as_ref().unwrap().contains("weir-flow"));
    }
}
