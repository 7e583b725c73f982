//! Runs are found where they are saved.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use aec_eval::results::directory::{base, create, find_incomplete, group, list};
use aec_eval::results::metadata::Metadata;
use proptest::prelude::*;

use super::support::{description, line, row};

fn name(environment: &str, model: &str, provider: Option<&str>) -> String {
    let path = group(Path::new("b"), environment, model, provider);
    path.strip_prefix("b/evals").unwrap().to_str().unwrap().to_owned()
}

#[test]
fn directories_are_those_of_the_manual() {
    assert_eq!(name("my-env", "gpt-4.1-mini", Some("openai")), "my-env--openai--gpt-4.1-mini");
    assert_eq!(name("my-env", "openai/gpt-4.1-mini", Some("openai")), "my-env--openai--gpt-4.1-mini");
    assert_eq!(name("gsm8k", "qwen/qwen3-235b-a22b", None), "gsm8k--qwen--qwen3-235b-a22b");
    assert_eq!(name("owner/env@1.2", "model:free", None), "owner/env@1.2--model:free");
    let directory = tempfile::tempdir().unwrap();
    let package = directory.path();
    assert_eq!(base(Some(Path::new("out")), Some(package)), Path::new("out"));
    assert_eq!(base(None, Some(package)), package.join("outputs"));
    assert_eq!(base(None, Some(&package.join("none"))), Path::new("outputs"));
    assert_eq!(base(None, None), Path::new("outputs"));
}

#[test]
fn no_two_models_share_a_directory() {
    let long = "m".repeat(5000);
    let longer = "m".repeat(5001);
    let models = [
        "a/b", "a--b", "a-/b", "a/-b", "a//b", "a---b", "/a/b", "a/b/", "", ".", "..", "../a", "-", "~",
        "a\0b", "a\nb", "a\\b", "a_b", "a*b", " a", "a", &long, &longer, "..a", ".a", "e\u{301}", "é",
        "a/../b", "a/.b",
    ];
    let names: HashSet<_> = models.iter().map(|model| name("env", model, None)).collect();
    assert_eq!(names.len(), models.len(), "{names:#?}");
    for name in &names {
        assert!(name.len() < 255 && !name.contains('/') && !name.contains(".."), "{name}");
        assert!(name.chars().all(|character| !character.is_control()), "{name}");
    }
    assert_ne!(name("x--y", "z", None), name("x", "y/z", None));
    assert_ne!(name("x-", "y", None), name("x", "-y", None));
}

#[test]
fn new_runs_have_names_of_their_own() {
    let directory = tempfile::tempdir().unwrap();
    let group = group(directory.path(), "e", "m", None);
    let runs: HashSet<_> = (0..50).map(|_| create(&group).unwrap()).collect();
    assert_eq!(runs.len(), 50);
    for run in &runs {
        let id = run.file_name().unwrap().to_str().unwrap();
        assert!(id.len() == 8 && id.bytes().all(|byte| b"0123456789abcdef".contains(&byte)), "{id}");
        assert!(run.is_dir());
    }
    std::fs::write(directory.path().join("file"), "").unwrap();
    assert_eq!(create(&directory.path().join("file/e")).unwrap_err().id.as_deref(), Some("R030"));
}

fn save(group: &Path, id: &str, rows: u32, change: impl FnOnce(&mut Metadata)) -> PathBuf {
    let run = group.join(id);
    std::fs::create_dir_all(&run).unwrap();
    let lines: Vec<_> = (0..rows).flat_map(|number| line(&row(0, number, 1.0))).collect();
    std::fs::write(run.join("results.jsonl"), lines).unwrap();
    let summary = aec_eval::results::aggregate::Aggregate::new(1, 0.5).summary();
    let mut metadata = description(4, 1).metadata(&summary, 0.0);
    metadata.rollouts = Some(rows.into());
    metadata.complete = Some(rows >= 4);
    change(&mut metadata);
    metadata.write(&run.join("metadata.json")).unwrap();
    run
}

fn dated(date: &str) -> impl FnOnce(&mut Metadata) {
    let date = date.to_owned();
    move |metadata| metadata.date = Some(date)
}

#[test]
fn the_newest_incomplete_run_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let group = group(directory.path(), "e", "m", None);
    assert!(find_incomplete(&group, 4, |_| true).is_none(), "there is no group yet");
    save(&group, "00000001", 2, dated("2026-01-01T00:00:00Z"));
    let newest = save(&group, "00000002", 3, dated("2026-03-01T00:00:00Z"));
    let middle = save(&group, "00000003", 1, dated("2026-02-01T00:00:00Z"));
    let complete = save(&group, "00000004", 4, dated("2026-04-01T00:00:00Z"));
    std::fs::create_dir(group.join("00000005")).unwrap();
    let find = |wanted| find_incomplete(&group, wanted, |_| true).unwrap().path;
    assert_eq!(find(4), newest);
    assert_eq!(find(8), complete, "more examples are wanted now");
    let other = |metadata: &Metadata| metadata.rollouts != Some(3);
    assert_eq!(find_incomplete(&group, 4, other).unwrap().path, middle);
    assert!(find_incomplete(&group, 4, |_| false).is_none());
}

#[test]
fn rows_of_verifiers_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let old =
        |metadata: &mut Metadata| (metadata.complete, metadata.rollouts, metadata.date) = (None, None, None);
    let run = save(directory.path(), "aaaaaaaa", 3, old);
    assert_eq!(find_incomplete(directory.path(), 4, |_| true).unwrap().path, run);
    assert!(find_incomplete(directory.path(), 3, |_| true).is_none());
}

#[test]
fn all_runs_are_listed_and_bad_ones_told() {
    let directory = tempfile::tempdir().unwrap();
    let (one, two) = (directory.path().join("one"), directory.path().join("two"));
    let newer = save(&group(&one, "owner/e", "m", None), "00000001", 2, dated("2026-02-01T00:00:00Z"));
    let older = save(&group(&two, "e", "m/n", None), "00000002", 4, dated("2026-01-01T00:00:00Z"));
    let broken = save(&group(&two, "e", "m/n", None), "00000003", 4, |_| {});
    std::fs::write(broken.join("metadata.json"), "{").unwrap();
    std::fs::write(two.join("evals/file"), "").unwrap();
    std::os::unix::fs::symlink(&two, two.join("evals/circle")).unwrap();
    let (runs, problems) = list(&[&one, &two, &one, &directory.path().join("none")]);
    assert_eq!(problems, []);
    let found: HashSet<_> = runs.iter().map(|run| &run.path).collect();
    assert_eq!((found, runs.len()), (HashSet::from([&newer, &older, &broken]), 3));
    let place = |path: &PathBuf| runs.iter().position(|run| run.path == *path).unwrap();
    assert!(place(&newer) < place(&older));
    let bad = runs[place(&broken)].metadata.as_ref().unwrap_err();
    assert_eq!(bad.id.as_deref(), Some("R026"));
    assert_eq!(runs[place(&newer)].id, "00000001");
}

proptest! {
    #[test]
    fn different_names_have_different_directories(a in "[a-c/.~ -]{0,6}", b in "[a-c/.~ -]{0,6}") {
        prop_assert_eq!(name("e", &a, None) == name("e", &b, None), a == b);
        prop_assert_eq!(name(&a, "m", None) == name(&b, "m", None), a == b);
    }

    #[test]
    fn a_directory_can_be_made_for_any_name(environment in any::<String>(), model in any::<String>()) {
        let directory = tempfile::tempdir().unwrap();
        let path = group(directory.path(), &environment, &model, None);
        prop_assert!(path.starts_with(directory.path()));
        prop_assert!(!path.components().any(|part| part == std::path::Component::ParentDir));
        std::fs::create_dir_all(&path).unwrap();
    }
}
