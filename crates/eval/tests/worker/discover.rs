//! Finding environments without loading them.

use std::path::Path;

use crate::worker::world::{fixtures, interpreter};
use aec_eval::worker::discover::{Discovered, discover};

#[tokio::test]
#[cfg_attr(not(packages), ignore = "needs the Python package index")]
async fn environments_are_found() {
    let python = interpreter("0.1.14");
    let found = discover(&python, "owner/gsm8k@0.1.3", Some(&fixtures())).await.unwrap();
    assert_eq!(
        (found.module.as_str(), found.local, found.verifiers.as_deref()),
        ("gsm8k", true, Some("0.1.14"))
    );
    assert_eq!(found.package_directory, Some(fixtures().join("gsm8k")));
    assert_eq!(found.refusal("gsm8k", &python), None);
    let found = discover(&python, "reverse-text", Some(&fixtures())).await.unwrap();
    assert_eq!(found.origin, Some(fixtures().join("reverse_text/reverse_text/__init__.py")));
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

#[test]
fn an_interpreter_without_the_library_is_refused() {
    let found = Discovered {
        python: "3.11.7".to_owned(),
        verifiers: None,
        module: "x".to_owned(),
        origin: None,
        local: false,
        package_directory: None,
        installed_version: None,
        problem: None,
    };
    assert_eq!(found.refusal("x", Path::new("python")).unwrap().id.as_deref(), Some("R041"));
}
