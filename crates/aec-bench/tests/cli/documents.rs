//! Documents that must agree with the program.

use std::path::PathBuf;

fn document(path: &str) -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn the_reference_is_what_the_program_says() {
    let docs = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let run = crate::cli::world().run(["--json", "dev", "reference", "--check", docs.to_str().unwrap()]);
    assert_eq!(run.code, Some(0), "run `aec-bench dev reference` and read what changed: {:?}", run.errors());
}

#[test]
fn the_readme_names_the_two_commands() {
    let readme = document("README.md");
    for command in ["cargo run --release -- quickstart", "cargo test --workspace"] {
        assert!(readme.contains(command), "{command}");
    }
    assert!(document(".ci/run").contains("cargo test --workspace"), "CI runs the README's test command");
}

/// The numbers of the problems in a source file.
fn problem_numbers(source: &str) -> Vec<u32> {
    let makers = ["FAMILY.number(", "self.find(", "fault(", "fault(template, ", ".problem("];
    let mut numbers = Vec::new();
    for maker in makers {
        for rest in source.split(maker).skip(1) {
            let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
            numbers.extend(digits.parse::<u32>());
        }
    }
    numbers
}

#[test]
fn every_problem_of_templates_and_manifests_is_documented() {
    let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../author/src");
    let (templates, generation) = (document("docs/templates.md"), document("docs/generation.md"));
    let mut found = 0;
    for path in crate::cli::template::walk(&source) {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        // Manifests and suites have their own families.
        let (page, letter) = match name {
            "manifest.rs" | "produce.rs" | "replay.rs" => (&generation, 'G'),
            "suite.rs" => (&generation, 'S'),
            _ => (&templates, 'P'),
        };
        for number in problem_numbers(&text) {
            found += 1;
            assert!(page.contains(&format!("`{letter}{number:03}`")), "{letter}{number:03} of {name}");
        }
    }
    assert!(found > 50, "{found}");
}

#[test]
fn everything_of_the_ledger_is_documented() {
    let page = document("docs/ledger.md");
    let crates = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = 0;
    let commands = crate::cli::template::walk(&crates.join("cli/src/commands/ledger"));
    assert!(commands.len() > 5, "{commands:?}");
    for path in crate::cli::template::walk(&crates.join("ledger/src")).into_iter().chain(commands) {
        for number in problem_numbers(&std::fs::read_to_string(&path).unwrap()) {
            found += 1;
            assert!(page.contains(&format!("`L{number:03}`")), "L{number:03} of {}", path.display());
        }
    }
    assert!(found > 20, "{found}");
    let names = aec_ledger::export::COLUMNS.iter().map(|column| column.name);
    for name in names.chain(aec_ledger::index::FIELDS.map(|(name, _)| name)) {
        assert!(page.contains(&format!("`{name}`")), "{name}");
    }
}

#[test]
fn every_problem_and_key_of_evolution_is_documented() {
    let page = document("docs/evolution.md");
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut sources = crate::cli::template::walk(&root.join("../evolve/src"));
    for noun in ["evolve", "swarm"] {
        let commands = crate::cli::template::walk(&root.join("../cli/src/commands").join(noun));
        assert!(commands.len() > 5, "{commands:?}");
        sources.extend(commands);
    }
    let mut found = 0;
    for path in sources {
        let text = std::fs::read_to_string(&path).unwrap();
        for number in problem_numbers(&text) {
            found += 1;
            // Of a range, the page names only the ends.
            let told = (30..=33).contains(&number) || page.contains(&format!("`X{number:03}`"));
            assert!(told, "X{number:03} of {}", path.display());
        }
    }
    assert!(found > 20, "{found}");
    for noun in ["evolution", "swarm", "workspace"] {
        let env = crate::cli::world();
        let schema = env.run(["--json", "schema", noun]).data();
        for key in schema["properties"].as_object().unwrap().keys() {
            assert!(page.contains(key.as_str()), "{noun}: {key}");
        }
    }
}
