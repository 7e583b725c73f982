//! Rules of this project that the compiler does not check.

#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that is not as it should be")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A longer file probably has a second subject.
const LONGEST_FILE: usize = 800;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Files with this extension in a directory, without hidden directories and `target`.
fn files_below(directory: &Path, extension: &str) -> Vec<PathBuf> {
    fn walk(directory: &Path, extension: &str, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if path.is_dir() && !name.starts_with('.') && name != "target" {
                walk(&path, extension, found);
            } else if path.extension().is_some_and(|found| found == extension) {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    if directory.is_dir() {
        walk(directory, extension, &mut found);
    }
    found.sort();
    found
}

/// The crates of the map in ARCHITECTURE.md, lowest first. A crate may depend only on those before it.
fn map() -> Vec<String> {
    let page = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let rows = page.lines().skip_while(|line| !line.starts_with("| crate |")).skip(2);
    let names = rows.map_while(|line| line.strip_prefix("| `")?.split_once('`')).map(|(name, _)| name);
    names.map(|name| if name == "aec-bench" { name.to_owned() } else { format!("aec-{name}") }).collect()
}

/// A crate: its directory, and its manifest.
struct Crate {
    directory: PathBuf,
    manifest: toml::Table,
}

impl Crate {
    fn all() -> Vec<Self> {
        let manifests = files_below(&root().join("crates"), "toml")
            .into_iter()
            .filter(|path| path.ends_with("Cargo.toml"));
        let read = manifests.map(|path| Self {
            directory: path.parent().unwrap().to_owned(),
            manifest: std::fs::read_to_string(&path).unwrap().parse().unwrap(),
        });
        read.filter(|found| found.manifest.contains_key("package")).collect()
    }

    fn name(&self) -> &str {
        self.manifest["package"]["name"].as_str().unwrap()
    }

    fn dependencies(&self, table: &str) -> toml::Table {
        self.manifest.get(table).and_then(toml::Value::as_table).cloned().unwrap_or_default()
    }

    /// The source files in some of its folders, as one text.
    fn sources(&self, folders: &[&str]) -> String {
        let files = folders.iter().flat_map(|folder| files_below(&self.directory.join(folder), "rs"));
        files.map(|path| std::fs::read_to_string(path).unwrap()).collect()
    }
}

#[test]
fn crates_depend_only_on_lower_crates() {
    let map = map();
    let mut seen = Vec::new();
    for one in Crate::all() {
        let name = one.name();
        let own = one.dependencies("dependencies").into_iter().map(|(key, _)| key);
        let own: Vec<String> = own.filter(|key| key.starts_with("aec-")).collect();
        if name == "aec-xtest" {
            assert!(own.is_empty(), "aec-xtest must not depend on the other crates: {own:?}");
        }
        let rank = |name: &str| map.iter().position(|other| other == name);
        let here = rank(name).unwrap_or_else(|| panic!("{name} is not on the map in ARCHITECTURE.md"));
        for dependency in own {
            assert!(
                rank(&dependency).is_some_and(|there| there < here),
                "{name} must not depend on {dependency}"
            );
        }
        seen.push(name.to_owned());
    }
    seen.sort();
    let mut map = map;
    map.sort();
    assert_eq!(seen, map);
}

/// Whoever works in a room can read and run the program in it.
#[test]
fn the_program_in_rooms_is_made_of_no_generator() {
    let all = Crate::all();
    let (mut known, mut waiting) = (BTreeSet::new(), vec!["aec-agent".to_owned()]);
    while let Some(name) = waiting.pop() {
        let one = all.iter().find(|one| one.name() == name).unwrap();
        let own = one.dependencies("dependencies").into_iter().map(|(key, _)| key);
        waiting.extend(own.filter(|key| key.starts_with("aec-") && !known.contains(key)));
        known.insert(name);
    }
    for forbidden in ["aec-author", "aec-package", "aec-eval", "aec-evolve", "aec-cli"] {
        assert!(!known.contains(forbidden), "the program in rooms would have {forbidden}: {known:?}");
    }
    let program =
        std::fs::read_to_string(root().join("crates/aec-bench/src/bin/aec-bench-agent.rs")).unwrap();
    let used: BTreeSet<&str> =
        program.split("aec_").skip(1).filter_map(|rest| rest.split("::").next()).collect();
    assert_eq!(used, BTreeSet::from(["agent"]), "its package depends on everything");
}

/// Dependencies that no source names, with the reason for each: `(crate, dependency, reason)`.
const UNNAMED: &[(&str, &str, &str)] = &[];

/// Whether a source names a crate: at the beginning of a path, or in a `use` statement.
fn names(source: &str, dependency: &str) -> bool {
    let word = &dependency.replace('-', "_");
    let code = source.lines().map(str::trim_start).filter(|line| !line.starts_with("//"));
    let mut places = code.flat_map(|line| line.match_indices(word).map(move |(at, _)| line.split_at(at)));
    places.any(|(before, after)| {
        let after = &after[word.len()..];
        let begins = !before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
        let alone = before.ends_with("use ") && (after.starts_with(';') || after.starts_with(" as "));
        begins && (after.starts_with("::") || alone)
    })
}

#[test]
fn dependencies_are_used() {
    let mut wrong = Vec::new();
    let mut used = BTreeSet::new();
    for one in Crate::all() {
        let name = one.name();
        let unnamed = |key: &str| UNNAMED.iter().any(|(owner, other, _)| *owner == name && *other == key);
        let own = one.sources(&["src"]);
        let all = own.clone() + &one.sources(&["tests", "benches", "examples"]);
        let dependencies = one.dependencies("dependencies");
        for key in dependencies.keys() {
            if !names(&own, key) && !unnamed(key) {
                let what = if names(&all, key) { "only its tests name it" } else { "nothing names it" };
                wrong.push(format!("{name} depends on {key}: {what}"));
            }
        }
        let for_tests = one.dependencies("dev-dependencies");
        for (key, value) in &for_tests {
            let again = dependencies.contains_key(key) && value.get("features").is_none();
            if again || (!names(&all, key) && !unnamed(key)) {
                let what = if again { "the crate does anyway" } else { "nothing names it" };
                wrong.push(format!("tests of {name} depend on {key}: {what}"));
            }
        }
        used.extend(dependencies.into_iter().chain(for_tests).map(|(key, _)| key));
    }
    let workspace: toml::Table = std::fs::read_to_string(root().join("Cargo.toml")).unwrap().parse().unwrap();
    let known = workspace["workspace"]["dependencies"].as_table().unwrap().keys();
    wrong.extend(known.filter(|key| !used.contains(*key)).map(|key| format!("no crate depends on {key}")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn names_of_crates_are_found_where_code_names_them() {
    for (source, expected) in [
        ("use serde_json::Value;", true),
        ("    #[derive(serde_json::X)]", true),
        ("pub use serde_json;", true),
        ("use serde_json as json;", true),
        ("// use serde_json::Value;", false),
        ("use crate::serde_json::Value;", false),
        ("let my_serde_json::x = 1;", false),
        ("serde_json_lines::read()", false),
        ("\"serde_json\"", false),
    ] {
        assert_eq!(names(source, "serde-json"), expected, "{source}");
    }
}

#[test]
fn source_files_say_what_they_are_for_and_stay_short() {
    let files = files_below(&root(), "rs");
    assert!(!files.is_empty());
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let shown = path.strip_prefix(root()).unwrap().display().to_string();
        assert!(text.starts_with("//! "), "{shown} must begin with a `//!` line that says what it is for");
        let lines = text.lines().count();
        assert!(lines <= LONGEST_FILE, "{shown} has {lines} lines: split off its second subject");
        for (number, line) in text.lines().enumerate() {
            assert_eq!(line.trim_end(), line, "{shown}:{} ends with blanks", number + 1);
            let unfinished = [
                concat!("TO", "DO"),
                concat!("FIX", "ME"),
                concat!("todo", "!("),
                concat!("unimplemented", "!("),
            ];
            assert!(
                !unfinished.iter().any(|word| line.contains(word)),
                "{shown}:{} is unfinished",
                number + 1
            );
        }
    }
}

/// Parsers without limits on depth and width, and the files that may name them: there, the limits are counted first.
const UNBOUNDED: [(&str, &[&str]); 7] = [
    (
        "serde_json::from_slice",
        &["base/src/json/bounded.rs", "sandbox/src/channel.rs", "sandbox/src/wire.rs"],
    ),
    ("serde_json::from_str", &["base/src/json/bounded.rs", "base/src/document/json.rs"]),
    ("serde_json::from_reader", &[]),
    (
        "serde_json::Deserializer::from_",
        &["base/src/json/bounded.rs", "prime/src/rollouts/json.rs", "eval/src/results/value.rs"],
    ),
    ("serde_saphyr::from_", &["base/src/document/yaml.rs"]),
    ("toml::from_", &[]),
    ("parse::<toml::", &[]),
];

/// A reader of foreign text that is not in this list cannot be written without `aec_base::json` or
/// `aec_base::document`; `crates/aec-bench/tests/readers` gives hostile input to those and to what is built on them.
/// The messages of `sandbox` are between two processes of this program and have their own limit of bytes.
#[test]
fn foreign_text_is_read_within_limits() {
    for path in files_below(&root().join("crates"), "rs") {
        let name = path.strip_prefix(root().join("crates")).unwrap().to_string_lossy().into_owned();
        let is_program =
            name.contains("/src/") && !name.starts_with("xtest/") && !name.starts_with("model-server/");
        if !is_program || name.contains("/tests/") || name.ends_with("/tests.rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let program = text.split("#[cfg(test)]\nmod ").next().unwrap();
        for (parser, allowed) in UNBOUNDED {
            assert!(
                !program.contains(parser) || allowed.contains(&name.as_str()),
                "crates/{name} calls {parser}: read with aec_base::json or aec_base::document, which have limits"
            );
        }
    }
}

#[test]
fn every_folder_of_tests_belongs_to_the_executable() {
    let tests = root().join("crates/aec-bench/tests");
    let all = std::fs::read_to_string(tests.join("all.rs")).unwrap();
    for folder in std::fs::read_dir(&tests).unwrap().map(|entry| entry.unwrap()) {
        let name = folder.file_name().into_string().unwrap();
        let is_named = name == "all.rs" || all.lines().any(|line| line == format!("mod {name};"));
        assert!(is_named, "crates/aec-bench/tests/all.rs must name `{name}`, or its tests never run");
    }
}

/// Cells that are padded by hand do not fit their terminal, and have no `--wide`.
#[test]
fn rows_are_laid_out_by_the_one_table() {
    let source = root().join("crates/cli/src");
    // Live displays draw into rows of a fixed width, and the grouped help belongs to the parser of arguments.
    let others = ["table", "table.rs", "progress", "groups.rs"].map(|path| source.join(path));
    for path in files_below(&source, "rs") {
        if others.iter().any(|other| path.starts_with(other)) {
            continue;
        }
        for (number, line) in std::fs::read_to_string(&path).unwrap().lines().enumerate() {
            let pads = [":<", ":>", ":^"].iter().any(|alignment| {
                line.match_indices(alignment).any(|(at, _)| {
                    let (before, after) = (&line[..at], &line[at + alignment.len()..]);
                    let in_braces = before.rfind('{').is_some_and(|open| !before[open..].contains('}'));
                    in_braces && after.starts_with(|letter: char| letter.is_ascii_digit())
                })
            });
            assert!(!pads, "{}:{} pads a cell: use crate::table::Table", path.display(), number + 1);
        }
    }
}

/// The list of tests that could not run is the end of `cargo test --workspace`.
#[test]
fn nothing_is_printed_after_the_last_tests() {
    for one in Crate::all() {
        let name = one.name();
        assert!(name <= "aec-xtest", "cargo runs the tests of {name} after those of aec-xtest");
        let library = one.manifest.get("lib").and_then(|library| library.get("doctest"));
        let has_none = library.and_then(toml::Value::as_bool) == Some(false);
        let is_library = one.directory.join("src/lib.rs").is_file();
        assert!(has_none || !is_library, "{name} must have `doctest = false` below `[lib]`");
    }
}

#[test]
fn dependencies_are_explained() {
    let page = std::fs::read_to_string(root().join("docs/dependencies.md")).unwrap();
    let manifest: toml::Table = std::fs::read_to_string(root().join("Cargo.toml")).unwrap().parse().unwrap();
    let dependencies = manifest["workspace"]["dependencies"].as_table().unwrap();
    let rows = page.lines().skip_while(|line| !line.starts_with("| crate | for |")).skip(2);
    let rows = rows.map_while(|line| line.strip_prefix('|')?.split_once('|')).map(|(names, _)| names);
    let mut explained: Vec<&str> = rows.flat_map(|names| names.split('`').skip(1).step_by(2)).collect();
    explained.sort_unstable();
    let mut known: Vec<&str> = dependencies.keys().map(String::as_str).collect();
    known.retain(|name| !name.starts_with("aec-"));
    known.sort_unstable();
    assert_eq!(explained, known, "docs/dependencies.md explains each dependency once");
}

#[test]
fn numbers_for_people_are_rounded_in_one_place() {
    let mut wrong = Vec::new();
    for name in ["cli", "report", "web", "evolve"] {
        for path in files_below(&root().join("crates").join(name).join("src"), "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap();
            // What only tests use may print as it likes.
            if path.ends_with("simulations.rs") || path.components().any(|part| part.as_os_str() == "tests") {
                continue;
            }
            for (at, line) in code.lines().enumerate() {
                let is_rounded = |place: &str| {
                    let digits = place.trim_start_matches('+').strip_prefix('.');
                    digits.is_some_and(|digits| {
                        digits.starts_with(|c: char| c.is_ascii_digit()) && !digits.contains('e')
                    })
                };
                let places =
                    line.split('{').skip(1).filter_map(|rest| rest.split_once('}')?.0.split_once(':'));
                if places.into_iter().any(|(_, place)| is_rounded(place)) {
                    wrong.push(format!(
                        "{}:{}: use aec_base::decimal::rounded or signed",
                        path.display(),
                        at + 1
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
