//! Content hashes under many `.gitignore` files, against the function of Prime's program.

use std::fmt::Write as _;

use aec_prime::service::hub::Package;

use crate::real_cli::cli::Version;
use crate::real_cli::with_each;

/// Hashes each given directory, one per line; a rule that breaks Prime's own parser gives `error`.
const HASHES: &str = r#"
import sys
from pathlib import Path
from prime_cli.commands.env import compute_content_hash
for directory in sys.argv[1:]:
    try:
        print(compute_content_hash(Path(directory)))
    except Exception as error:
        print("error", type(error).__name__)
"#;

const FILES: [&str; 16] = [
    "demo/__init__.py",
    "demo/a.txt",
    "demo/b.log",
    "demo/ab/a.txt",
    "demo/ab/ba/a.log",
    "demo/ab/ba/[x].txt",
    "demo/a b/c.txt",
    "demo/x!y.txt",
    "demo/#c.txt",
    "other/a.txt",
    "other/ab/b.txt",
    "other/data/a.log",
    "data/a.txt",
    "data/ab/x.txt",
    "a.py",
    "b.py",
];

const PIECES: [&str; 26] = [
    "a", "b", "*", "**", "/", "?", ".", "txt", "log", "ab", "ba", "data", "demo", "[ab]", "[!a]", "[a-c]",
    "[x", "\\", "!", "#", " ", "a.txt", "*.log", "other", "]", "/**/",
];

/// Rules from a fixed sequence of numbers, so that a failure can be reproduced.
fn rules(seed: u64) -> String {
    let mut number = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
    let mut draw = |below: u64| {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (number >> 33) % below
    };
    let mut text = String::new();
    for _ in 0..=draw(3) {
        let length = 1 + draw(4);
        let negated = if draw(5) == 0 { "!" } else { "" };
        let line: String =
            (0..length).map(|_| PIECES[usize::try_from(draw(PIECES.len() as u64)).unwrap()]).collect();
        writeln!(text, "{negated}{line}").unwrap();
    }
    text
}

#[test]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
fn the_same_files_are_published() {
    with_each(&[Version::Newest], |program| {
        let root = tempfile::tempdir().unwrap();
        let mut directories = Vec::new();
        for seed in 0..600 {
            let directory = root.path().join(seed.to_string());
            for name in FILES {
                let path = directory.join(name);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, name).unwrap();
            }
            let project = "[project]\nname = \"demo\"\nversion = \"1\"\n\
                           [tool.hatch.build]\ninclude = [\"pyproject.toml\", \"*.py\"]\n";
            std::fs::write(directory.join("pyproject.toml"), project).unwrap();
            std::fs::write(directory.join(".gitignore"), rules(seed)).unwrap();
            directories.push(directory);
        }
        let theirs = program.python(HASHES, &directories).unwrap();
        let mut compared = 0;
        for (directory, theirs) in directories.iter().zip(theirs.lines()) {
            let rules = std::fs::read_to_string(directory.join(".gitignore")).unwrap();
            // If everything is ignored there is no wheel, and if Prime's parser breaks there is no hash.
            let Ok(package) = Package::build(directory) else { continue };
            if theirs.starts_with("error") {
                continue;
            }
            assert_eq!(package.content_hash, theirs, "{rules:?} publishes {:?}", package.source_files);
            compared += 1;
        }
        assert!(compared > 300, "only {compared} rules could be compared");
    });
}
