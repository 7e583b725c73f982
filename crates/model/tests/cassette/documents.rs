//! The document matches the program.

use std::path::Path;

#[test]
fn every_problem_is_documented() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("../../docs/cassettes.md")).unwrap();
    let mut found = 0;
    for entry in std::fs::read_dir(root.join("src/cassette")).unwrap() {
        let source = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        for rest in source.split("FAMILY.number(").skip(1) {
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            let id = format!("`K{:03}`", digits.parse::<u32>().unwrap());
            assert!(page.contains(&id), "docs/cassettes.md does not explain {id}");
            found += 1;
        }
    }
    assert!(found >= 9, "{found}");
    for shared in ["`K001`", "`K002`"] {
        assert!(page.contains(shared), "{shared}");
    }
}

#[test]
fn the_example_is_what_is_written() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("../../docs/cassettes.md")).unwrap();
    let example = std::fs::read_to_string(root.join("tests/cassette/version-1/calls-000001.jsonl")).unwrap();
    for line in example.lines() {
        assert!(page.contains(line), "docs/cassettes.md lacks this line of the example:\n{line}");
    }
}
