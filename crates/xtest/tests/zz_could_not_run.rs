//! Says which tests of the workspace cannot run on this machine, and why. Cargo runs it last, so that the end of
//! `cargo test --workspace` shows what was not checked.

#![expect(clippy::print_stdout, reason = "this is all it does")]
#![expect(clippy::unwrap_used, reason = "it stops at the first thing that is not as it should be")]

#[expect(dead_code, reason = "the half that only build scripts need")]
#[path = "../needs.rs"]
mod needs;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A test with an attribute that ignores it where parts are missing.
#[derive(Debug, PartialEq)]
struct Conditional {
    /// The names of all parts that it needs.
    needs: Vec<String>,
    /// The name of the test in its file.
    name: String,
}

fn main() {
    // Test runners ask for a list of tests first; this is none.
    if std::env::args().any(|argument| argument == "--list") {
        return;
    }
    check_reading();
    let missing: Vec<&needs::Part> = needs::PARTS.iter().filter(|part| !part.is_here()).collect();
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut long = Vec::new();
    let mut count = 0;
    for (path, test) in everywhere() {
        let lacks = |part: &&&needs::Part| test.needs.iter().any(|need| need == part.name);
        let lacking: Vec<&str> = missing.iter().filter(lacks).map(|part| part.name).collect();
        if !lacking.is_empty() {
            count += 1;
            found.entry(lacking.join(" and ")).or_default().push(path);
        } else if test.needs.iter().any(|need| need == "full") && !aec_xtest::full() {
            long.push(path);
        }
    }
    println!();
    if !long.is_empty() {
        println!("{} long tests run only with AEC_TEST=full: {}", long.len(), long.join(", "));
    }
    if count == 0 {
        println!("every test could run here");
        return;
    }
    println!("{count} tests could not run here:");
    for (parts, tests) in found {
        println!("  without {parts}: {}", tests.len());
        for part in missing.iter().filter(|part| parts.split(" and ").any(|name| name == part.name)) {
            println!("    {} takes {}", part.name, part.brought_by);
        }
        for test in tests {
            println!("      {test}");
        }
    }
}

/// All conditional tests of the workspace, with their paths.
fn everywhere() -> Vec<(String, Conditional)> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut waiting = vec![crates.clone()];
    let mut files = Vec::new();
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if entry.file_type().unwrap().is_dir() {
                waiting.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    let mut found = Vec::new();
    for file in files {
        let module = module(file.strip_prefix(&crates).unwrap());
        let tests = conditional(&std::fs::read_to_string(&file).unwrap());
        found.extend(tests.into_iter().map(|test| (format!("{module}::{}", test.name), test)));
    }
    found
}

/// The crate and the module of a file, like `eval worker::v1`.
fn module(file: &Path) -> String {
    let words: Vec<String> =
        file.with_extension("").iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let inner = words.get(2..).unwrap_or_default();
    let inner = inner.strip_suffix(&["mod".to_owned()]).unwrap_or(inner);
    format!("{} {}", words[0], inner.join("::"))
}

/// The conditional tests of a source text.
fn conditional(source: &str) -> Vec<Conditional> {
    let mut found = Vec::new();
    // The module in braces around a test, if there is one.
    let mut around = None;
    let mut needs: Option<Vec<String>> = None;
    let mut lines = source.lines();
    while let Some(line) = lines.next() {
        let code = line.trim_start();
        if let Some(name) = line.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(" {")) {
            around = Some(name);
        } else if line == "}" {
            around = None;
        } else if code.starts_with("#[cfg_attr(") {
            let mut attribute = code.to_owned();
            while !attribute.ends_with(")]") {
                attribute.push_str(lines.next().unwrap().trim());
            }
            if let Some((condition, _)) = attribute.split_once("ignore = ") {
                needs = Some(parts(condition));
            }
        } else if let Some(rest) = code.strip_prefix("async fn ").or_else(|| code.strip_prefix("fn "))
            && let Some(needs) = needs.take()
        {
            let name = rest.split('(').next().unwrap();
            let name = around.map_or_else(|| name.to_owned(), |around| format!("{around}::{name}"));
            found.push(Conditional { needs, name });
        }
    }
    found
}

/// The names in a condition like `not(all(slurm, podman))`.
fn parts(condition: &str) -> Vec<String> {
    let words = condition.split(|c: char| !c.is_alphanumeric() && c != '_');
    let names = words.filter(|word| !["", "cfg_attr", "not", "all"].contains(word)).map(str::to_owned);
    let names: Vec<String> = names.collect();
    for name in &names {
        let is_known = name == "full" || needs::PARTS.iter().any(|part| part.name == name);
        assert!(is_known, "`{name}` in `{condition}` is no part of needs.rs");
    }
    names
}

/// This target has no tests of its own, so it checks itself.
fn check_reading() {
    let attribute = |condition: &str| format!("#[cfg_{}(not({condition}), ignore = \"needs it\")]", "attr");
    let source = format!(
        "#[test]\n{}\nfn one() {{\n}}\n\n#[test]\nfn two() {{}}\n\nmod inner {{\n    #[test]\n    {}\n    async fn three() {{\n    }}\n}}\n",
        attribute("podman"),
        attribute("all(slurm,\n        packages)"),
    );
    let expected =
        [(&["podman"][..], "one"), (&["slurm", "packages"], "inner::three")].map(|(needs, name)| {
            Conditional {
                needs: needs.iter().map(|need| (*need).to_owned()).collect(),
                name: name.to_owned(),
            }
        });
    assert_eq!(conditional(&source), expected);
    assert_eq!(module(&PathBuf::from("aec-bench/tests/cli/mod.rs")), "aec-bench cli");
    assert_eq!(module(Path::new("eval/tests/worker/v1.rs")), "eval worker::v1");
}
