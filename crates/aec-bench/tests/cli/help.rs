//! Help, version, completions and manual pages. The texts of the help are in `docs/reference/cli.md`.

use crate::cli::world;

#[test]
fn no_command_shows_the_help_and_half_a_command_is_a_usage_error() {
    let env = world();
    let none = env.run::<&str>([]);
    assert_eq!(none.code, Some(0));
    assert!(none.stdout.contains("Usage: aec-bench"), "{none:?}");
    let half = env.run(["task"]);
    assert_eq!(half.code, Some(2));
    assert_eq!(half.stdout, "");
    assert!(half.stderr.contains("Usage: aec-bench task"), "{half:?}");
}

#[test]
fn version_in_text_and_json() {
    let env = world();
    let version = env!("CARGO_PKG_VERSION");
    for flag in ["--version", "-V"] {
        assert_eq!(env.run([flag]).stdout, format!("aec-bench {version}\n"));
    }
    let json = env.run(["--json", "--version"]);
    assert_eq!(json.envelope()["version"], version);
    assert_eq!(json.data()["text"], format!("aec-bench {version}\n"));
}

#[test]
fn colours_only_where_asked_for() {
    let mut env = world();
    env.set("CLICOLOR_FORCE", "1");
    assert!(env.run(["--help"]).stdout.contains("\x1b["));
    assert!(!env.run(["--no-color", "--help"]).stdout.contains("\x1b["));
    assert!(!env.run(["task", "list", "--no-color", "--nonsense"]).stderr.contains("\x1b["));
    let mut quiet = world();
    quiet.set("NO_COLOR", "1");
    assert!(!quiet.run(["--help"]).stdout.contains("\x1b["));
    assert!(!world().run(["--help"]).stdout.contains("\x1b["), "not on a pipe");
}

#[test]
fn completions_for_every_shell_know_the_commands() {
    let env = world();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = env.run(["completions", shell]);
        assert_eq!(run.code, Some(0));
        assert!(run.stdout.contains("validate") && run.stdout.contains("quickstart"), "{shell}");
    }
    // The script is one that the shell accepts.
    env.write("completions.bash", env.run(["completions", "bash"]).stdout);
    let check =
        std::process::Command::new("bash").arg("-n").arg(env.path("completions.bash")).status().unwrap();
    assert!(check.success());
    assert_eq!(env.run(["completions", "csh"]).code, Some(2));
}

#[test]
fn manual_pages() {
    let env = world();
    let page = env.run(["man"]);
    assert!(page.stdout.contains(".TH aec-bench 1"), "{page:?}");
    assert!(!page.stdout.contains('\x1b'));
    let data = env.run(["--json", "man", "--output", "pages"]).data();
    assert!(data["files"].as_array().unwrap().len() >= 30);
    assert!(env.read("pages/aec-bench-task-list.1").contains("difficulty"));
}
