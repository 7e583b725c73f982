//! Documents that must agree with the program.

use std::path::PathBuf;

use aec_base::settings::SETTINGS;

fn document(path: &str) -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn the_settings_table_is_the_one_the_program_uses() {
    let page = document("docs/settings.md");
    for row in &SETTINGS {
        let cell = |value: Option<&str>| value.map_or_else(|| "–".to_owned(), |value| format!("`{value}`"));
        let default = if row.default.is_empty() {
            "name of the directory".to_owned()
        } else {
            format!("`{}`", row.default)
        };
        let line = format!(
            "| `{}` | {} | {} | `{}` | {} | {default} | {} |",
            row.key,
            cell(row.flag),
            cell(row.experiment_key),
            row.key,
            cell(row.user_key),
            row.help
        );
        assert!(page.contains(&line), "docs/settings.md lacks this row:\n{line}");
    }
}

#[test]
fn the_readme_names_the_two_commands() {
    let readme = document("README.md");
    for command in ["cargo run --release -- quickstart", "cargo test --workspace"] {
        assert!(readme.contains(command), "{command}");
    }
    assert!(document(".ci/run").contains("cargo test --workspace"), "CI runs the README's test command");
}

#[test]
fn the_exit_codes_are_documented() {
    let page = document("docs/cli.md");
    for code in ["| 0 |", "| 1 |", "| 2 |", "| 3 |", "| 4 |", "| 70 |", "| 130 |"] {
        assert!(page.contains(code), "{code}");
    }
}
