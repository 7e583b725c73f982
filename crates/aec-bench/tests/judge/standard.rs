//! Tasks with the standard verifier: its native equivalent, a warm room and a cold one give the same verdicts.

use std::sync::Arc;

use aec_base::content::ContentStore;
use aec_judge::judge::Judge;
use aec_judge::pool::Pool;
use aec_judge::scorer::STANDARD_VERIFY_PY;
use aec_judge::submission::Submission;
use aec_judge::verdict::{Judged, Outcome, Verdict};

use crate::judge::{judge, write_task};

const ANSWERS: &str = r#"{"version": 1, "output": "out/answer.md", "fields": {
  "drop": {"type": "number", "value": 8.1396, "unit": "V", "rel_tol": 0.005},
  "size": {"type": "integer", "value": 25},
  "compliant": {"type": "boolean", "value": true, "weight": 2}
}}"#;

/// Paths and contents.
type Files = Vec<(&'static str, &'static str)>;

fn parts(verdict: &Verdict) -> (Outcome, Option<f64>, Option<serde_json::Value>) {
    (verdict.outcome, verdict.reward, verdict.details.clone())
}

#[test]
fn native_warm_and_cold_verdicts_agree() {
    let dir = tempfile::tempdir().unwrap();
    let task = write_task(&dir.path().join("task"));
    let store = ContentStore::new(dir.path().join("store"));
    std::fs::write(task.path.join("tests/verify.py"), STANDARD_VERIFY_PY).unwrap();
    std::fs::write(task.path.join("tests/answers.json"), ANSWERS).unwrap();
    let native = judge();
    let warm = Judge { native: false, pool: Some(Arc::new(Pool::default())), ..judge() };
    let cold = Judge { native: false, ..judge() };
    let right = r#"{"drop": "8.14 V", "size": 25, "compliant": "yes"}"#;
    let cases: Vec<(Files, Option<f64>)> = vec![
        (vec![("out/answer.md", right)], Some(1.0)),
        (
            vec![(
                "out/answer.md",
                "# Report\n```JSON\n{\"compliant\": true, \"size\": \"25\", \"drop\": 8140, }\n```",
            )],
            Some(0.75),
        ),
        (vec![("out/answer.md", "{\"drop\": \"8140 mV\"}")], Some(0.25)),
        (vec![("out/answer.md", "{\"drop\": NaN, \"size\": 25.5, \"compliant\": \"maybe\"}")], Some(0.0)),
        (vec![("out/answer.md", "")], Some(0.0)),
        (vec![("out/answer.md/inner", right)], Some(0.0)),
        (vec![("out", right)], Some(0.0)),
        (vec![("elsewhere.md", right)], Some(0.0)),
        (vec![], Some(0.0)),
    ];
    for (files, expected) in cases {
        let contents = files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()));
        let submission = Submission::from_contents(contents, &store).unwrap();
        let verdict = native.verdict(&task, &submission);
        assert_eq!(verdict.judged, Judged::Native);
        assert_eq!(verdict.reward, expected, "{files:?}: {verdict:?}");
        for other in [&warm, &cold] {
            let other = other.verdict(&task, &submission);
            assert_eq!(other.judged, Judged::Room);
            assert_eq!(parts(&verdict), parts(&other), "{files:?}");
        }
    }
    std::fs::write(task.path.join("tests/answers.json"), "{\"version\": 2}").unwrap();
    let submission = Submission::from_contents([("out/answer.md".to_owned(), right.into())], &store).unwrap();
    for judge in [&native, &warm, &cold] {
        let verdict = judge.verdict(&task, &submission);
        assert_eq!((verdict.outcome, verdict.reward), (Outcome::VerifierFault, None), "{verdict:?}");
    }
    std::fs::write(task.path.join("tests/answers.json"), ANSWERS).unwrap();
    std::fs::write(task.path.join("tests/verify.py"), format!("{STANDARD_VERIFY_PY}\n")).unwrap();
    assert_eq!(native.verdict(&task, &submission).judged, Judged::Room, "one byte more is another verifier");
}
