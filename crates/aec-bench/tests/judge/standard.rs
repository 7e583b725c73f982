//! Tasks with the standard verifier: its native equivalent, a warm room and a cold one give the same verdicts.

use std::sync::Arc;

use aec_base::content::ContentStore;
use aec_judge::judge::Judge;
use aec_judge::pool::Pool;
use aec_judge::scorer::{REVISION, STANDARD_VERIFY_PY, revision_of};
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
        assert_eq!((verdict.judged, verdict.scorer), (Judged::Native, Some(REVISION)));
        assert_eq!(verdict.reward, expected, "{files:?}: {verdict:?}");
        for other in [&warm, &cold] {
            let other = other.verdict(&task, &submission);
            assert_eq!((other.judged, other.scorer), (Judged::Room, Some(REVISION)));
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
    let other = native.verdict(&task, &submission);
    assert_eq!((other.judged, other.scorer), (Judged::Room, None), "one byte more is another verifier");
}

/// The standard verifier as tasks made before revision 2 carry it.
const FIRST: &str = include_str!("../../../judge/tests/earlier/verify-1.py");

#[test]
fn a_task_with_an_earlier_standard_verifier_is_judged_by_its_own_script() {
    assert_eq!(revision_of(FIRST.as_bytes()), Some(1));
    let dir = tempfile::tempdir().unwrap();
    let task = write_task(&dir.path().join("task"));
    let store = ContentStore::new(dir.path().join("store"));
    std::fs::write(task.path.join("tests/answers.json"), ANSWERS).unwrap();
    let verdict = |script: &str, text: &str| {
        std::fs::write(task.path.join("tests/verify.py"), script).unwrap();
        let submitted = [("out/answer.md".to_owned(), text.as_bytes().to_vec())];
        judge().verdict(&task, &Submission::from_contents(submitted, &store).unwrap())
    };
    let plain = r#"{"drop": "8.14 V", "size": 25, "compliant": "yes"}"#;
    let marked = r#"{"drop": "**8.14 V**", "size": 25, "compliant": "yes"}"#;
    for (script, text, judged, scorer, reward) in [
        (STANDARD_VERIFY_PY, plain, Judged::Native, REVISION, 1.0),
        (STANDARD_VERIFY_PY, marked, Judged::Native, REVISION, 1.0),
        (FIRST, plain, Judged::Room, 1, 1.0),
        (FIRST, marked, Judged::Room, 1, 0.75),
    ] {
        let found = verdict(script, text);
        assert_eq!((found.judged, found.scorer), (judged, Some(scorer)), "{found:?}");
        assert_eq!((found.outcome, found.reward), (Outcome::Scored, Some(reward)), "{found:?}");
        let told = found.details.as_ref().and_then(|details| details["scorer"].as_u64());
        assert_eq!(told, (scorer > 1).then_some(u64::from(scorer)), "revision 1 did not say which it is");
    }
}
