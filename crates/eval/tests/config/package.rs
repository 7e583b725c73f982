//! Defaults that packages give for their own evaluation.
use aec_base::problem::{Problem, Severity};
use aec_eval::config::{EvalOptions, package_defaults};

fn read(text: &[u8]) -> Result<EvalOptions, Problem> {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("pyproject.toml"), text).unwrap();
    package_defaults(directory.path())
}

#[test]
fn the_two_defaults_are_read() {
    let text = b"[project]\nname = 'x'\n[tool.verifiers.eval]\nnum_examples = -1\nrollouts_per_example = 0x4\nother = 1\n";
    let expected =
        EvalOptions { num_examples: Some(-1), rollouts_per_example: Some(4), ..EvalOptions::default() };
    assert_eq!(read(text).unwrap(), expected);
}

#[test]
fn nothing_is_said_without_a_file_or_a_table() {
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(package_defaults(directory.path()), Ok(EvalOptions::default()));
    assert_eq!(package_defaults(&directory.path().join("absent")), Ok(EvalOptions::default()));
    for text in ["", "[project]\nname = 'x'\n", "[tool.verifiers]\n", "[tool.other.eval]\nnum_examples = 1\n"]
    {
        assert_eq!(read(text.as_bytes()), Ok(EvalOptions::default()), "{text}");
    }
}

#[test]
fn a_broken_file_is_a_warning_with_its_place() {
    for (text, line) in [
        (&b"[tool.verifiers.eval]\nnum_examples = \"many\"\n"[..], Some(2)),
        (b"[tool.verifiers.eval]\nrollouts_per_example = 0\n", Some(2)),
        (b"[tool.verifiers.eval]\nrollouts_per_example = 99999999999999999999\n", Some(2)),
        (b"[tool]\nverifiers = 1\n", Some(2)),
        (b"[tool.verifiers.eval\n", Some(1)),
        (b"a = 1\na = 2\n", Some(2)),
        (b"\xff\xfe", None),
    ] {
        let problem = read(text).unwrap_err();
        assert_eq!((problem.severity, problem.id.as_deref()), (Severity::Warning, Some("R012")), "{problem}");
        assert_eq!(problem.line, line, "{problem}");
        assert!(problem.fix.is_some());
    }
}

#[test]
fn a_directory_instead_of_a_file_is_a_warning() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("pyproject.toml")).unwrap();
    assert_eq!(package_defaults(directory.path()).unwrap_err().severity, Severity::Warning);
}
