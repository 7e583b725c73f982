//! Rules of the house that the compiler does not check.

#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that is not as it should be")]

use std::path::{Path, PathBuf};

/// Lowest first; a crate may depend on those before it.
const ROOMS: [&str; 19] = [
    "aec-base",
    "aec-http",
    "aec-sandbox",
    "aec-rlm",
    "aec-task",
    "aec-container",
    "aec-judge",
    "aec-author",
    "aec-model",
    "aec-ledger",
    "aec-run",
    "aec-cluster",
    "aec-report",
    "aec-harbor",
    "aec-prime",
    "aec-eval",
    "aec-evolve",
    "aec-web",
    "aec-bench",
];

/// A file longer than this has a second subject.
const LONGEST_FILE: usize = 800;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Files that belong to the project, as git sees them or, in a plain copy, as they lie.
fn files_with(extension: &str) -> Vec<PathBuf> {
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
    walk(&root(), extension, &mut found);
    found.sort();
    assert!(!found.is_empty());
    found
}

#[test]
fn crates_depend_only_on_lower_rooms() {
    let mut seen = Vec::new();
    for manifest in files_with("toml").into_iter().filter(|path| path.ends_with("Cargo.toml")) {
        let text = std::fs::read_to_string(&manifest).unwrap();
        let table: toml::Table = text.parse().unwrap();
        let Some(name) =
            table.get("package").and_then(|package| package.get("name")).and_then(toml::Value::as_str)
        else {
            continue;
        };
        let dependencies =
            table.get("dependencies").and_then(toml::Value::as_table).cloned().unwrap_or_default();
        let own: Vec<&String> = dependencies.keys().filter(|key| key.starts_with("aec-")).collect();
        if name == "aec-test" {
            assert!(own.is_empty(), "aec-test knows none of the rooms: {own:?}");
            continue;
        }
        let rank = |name: &str| ROOMS.iter().position(|room| *room == name);
        let here = rank(name).unwrap_or_else(|| panic!("{name} is not on the map"));
        for dependency in own {
            assert!(
                rank(dependency).is_some_and(|there| there < here),
                "{name} must not depend on {dependency}"
            );
        }
        seen.push(name.to_owned());
    }
    seen.sort();
    let mut rooms = ROOMS.map(str::to_owned).to_vec();
    rooms.sort();
    assert_eq!(seen, rooms);
}

#[test]
fn source_files_say_what_they_are_for_and_stay_short() {
    for path in files_with("rs") {
        let text = std::fs::read_to_string(&path).unwrap();
        let shown = path.strip_prefix(root()).unwrap().display().to_string();
        assert!(text.starts_with("//! "), "{shown} does not begin with what it is for");
        let lines = text.lines().count();
        assert!(lines <= LONGEST_FILE, "{shown} has {lines} lines: which second subject moved in?");
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

#[test]
fn dependencies_are_explained() {
    let page = std::fs::read_to_string(root().join("docs/dependencies.md")).unwrap();
    let manifest: toml::Table = std::fs::read_to_string(root().join("Cargo.toml")).unwrap().parse().unwrap();
    let dependencies = manifest["workspace"]["dependencies"].as_table().unwrap();
    for name in dependencies.keys().filter(|name| !name.starts_with("aec-")) {
        assert!(page.contains(&format!("`{name}`")), "docs/dependencies.md does not say what {name} is for");
    }
}
