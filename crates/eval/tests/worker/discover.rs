//! Finding environments without loading them.

use std::path::Path;

use crate::world::{fixtures, interpreter};
use aec_eval::worker::discover::{Discovered, EvalDefaults, discover};

#[tokio::test]
async fn environments_are_found_with_their_defaults() {
    let Some(python) = interpreter("0.1.14") else { return };
    let found = discover(&python, "owner/gsm8k@0.1.3", Some(&fixtures())).await.unwrap();
    assert_eq!(
        (found.module.as_str(), found.local, found.verifiers.as_deref()),
        ("gsm8k", true, Some("0.1.14"))
    );
    assert_eq!(found.package_directory, Some(fixtures().join("gsm8k")));
    assert_eq!(found.refusal("gsm8k", &python), None);
    let expected = EvalDefaults { num_examples: Some(3), rollouts_per_example: Some(2) };
    assert_eq!(found.eval_defaults(), (expected, Vec::new()));
    let found = discover(&python, "reverse-text", Some(&fixtures())).await.unwrap();
    assert_eq!(found.origin, Some(fixtures().join("reverse_text/reverse_text/__init__.py")));
    assert_eq!(found.eval_defaults(), (EvalDefaults::default(), Vec::new()));
    let found = discover(&python, "json", None).await.unwrap();
    assert!(found.origin.is_some() && !found.local);
    let found = discover(&python, "nobody-has-this", Some(Path::new("/nowhere"))).await.unwrap();
    let refusal = found.refusal("nobody-has-this", &python).unwrap();
    assert_eq!(refusal.id.as_deref(), Some("R042"));
    assert!(refusal.why.unwrap().contains("nobody_has_this"));
}

#[tokio::test]
async fn an_interpreter_that_is_none_is_told() {
    for python in ["/nowhere/python", "/bin/true", "/bin/false"] {
        let error = discover(Path::new(python), "gsm8k", None).await.unwrap_err();
        assert_eq!(error.problem().id.as_deref(), Some("R040"), "{python}: {error}");
    }
}

fn discovered(pyproject: &Path) -> Discovered {
    Discovered {
        python: "3.11.7".to_owned(),
        verifiers: None,
        module: "x".to_owned(),
        origin: None,
        local: false,
        package_directory: None,
        pyproject: Some(pyproject.to_owned()),
        installed_version: None,
        problem: None,
    }
}

#[test]
fn project_files_that_are_wrong_are_told_and_do_no_harm() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pyproject.toml");
    let huge = vec![b'#'; 2_000_000];
    for (text, warnings, expected) in [
        (&b""[..], 0, None),
        (b"tool = 3", 0, None),
        (b"[tool.verifiers]\neval = []", 0, None),
        (b"[tool.verifiers.eval]\nnum_examples = 7", 0, Some(7)),
        (b"[tool.verifiers.eval]\nnum_examples = \"7\"\nrollouts_per_example = 1.5", 2, None),
        (b"[tool.verifiers.eval]\nnum_examples = 7\nnum_examples = 8", 1, None),
        (b"[tool", 1, None),
        (b"\xff\xfe", 1, None),
        (&huge, 1, None),
    ] {
        std::fs::write(&path, text).unwrap();
        let (defaults, problems) = discovered(&path).eval_defaults();
        assert_eq!((problems.len(), defaults.num_examples), (warnings, expected), "{problems:?}");
        assert!(problems.iter().all(|one| one.id.as_deref() == Some("R051") && !one.what.is_empty()));
    }
    let (_, problems) = discovered(Path::new("/nowhere/pyproject.toml")).eval_defaults();
    assert_eq!(problems.len(), 1);
    assert_eq!(discovered(&path).refusal("x", Path::new("python")).unwrap().id.as_deref(), Some("R041"));
}
