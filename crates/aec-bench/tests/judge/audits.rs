//! Audits of verifiers: a sound verifier has no findings, and each kind of unsound one has its own finding.

use std::collections::BTreeSet;

use aec_base::content::ContentStore;
use aec_judge::audit::{Audit, AuditOptions, audit};
use aec_task::task::Task;

use crate::judge::{VERIFY, judge, write_task};

fn audit_of(change: impl FnOnce(&Task)) -> Audit {
    let dir = tempfile::tempdir().unwrap();
    let task = write_task(&dir.path().join("task"));
    change(&task);
    audit(&judge(), &task, AuditOptions::default(), &ContentStore::new(dir.path().join("store"))).unwrap()
}

fn ids(audit: &Audit) -> BTreeSet<String> {
    audit.findings.iter().filter_map(|finding| finding.id.clone()).collect()
}

fn write(task: &Task, name: &str, text: &str) {
    std::fs::write(task.path.join(name), text).unwrap();
}

/// A verifier that never crashes and gives no credit for odd answers.
fn sound() -> String {
    VERIFY
        .replace("answer = json.loads(output.read_text())", "try:\n    answer = json.loads(output.read_text(), parse_constant=lambda word: None)\n    assert isinstance(answer, dict)\nexcept Exception:\n    answer = {}")
        .replace("float(answer.get(key, \"nan\"))", "number(answer.get(key))")
        .replace("EXPECTED = {", "def number(value):\n    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else math.nan\n\nEXPECTED = {")
}

#[test]
fn a_sound_verifier_has_no_findings() {
    let audit = audit_of(|task| write(task, "tests/verify.py", &sound()));
    assert_eq!(ids(&audit), BTreeSet::new(), "{:?}", audit.findings);
    assert_eq!(audit.mutants.good, audit.mutants.all);
    assert!(audit.mutants.all > 20);
    assert_eq!(audit.equivalents.good, audit.equivalents.all);
    assert_eq!((audit.floor, audit.deterministic), (Some(0.0), Some(true)));
}

#[test]
fn each_weakness_has_its_finding() {
    let sound = sound();
    let with = |from: &str, to: &str| {
        assert!(sound.contains(from), "{from}");
        let text = sound.replace(from, to);
        ids(&audit_of(|task| write(task, "tests/verify.py", &text)))
    };
    assert!(
        with("EXPECTED.items()]", "list(EXPECTED.items())[:1]]").contains("A010"),
        "a field that is not checked"
    );
    assert!(with("rel_tol=0.01", "rel_tol=0.9").contains("A010"), "a tolerance that takes anything");
    assert!(with("number(answer.get(key))", "float(answer[key])").contains("A011"), "falls over");
    let unix_only = with("met = [", "if b'\\r' in output.read_bytes(): answer = {}\nmet = [");
    assert!(unix_only.contains("A020"), "wants its own line ends");
    assert!(with("answer = {}", "answer = dict(EXPECTED)").contains("A030"), "pays for nothing");
    assert!(
        with("{\"reward\": sum(met) / len(met)}", "{\"reward\": sum(met) / len(met), \"x\": hash('x')}")
            .is_empty(),
        "only the reward and the details count"
    );
    assert!(
        with("json.dumps(dict(zip(EXPECTED, met)))", "json.dumps({'seed': hash('x')})").contains("A040"),
        "depends on the hash seed"
    );
    let leak = audit_of(|task| {
        write(task, "tests/verify.py", &sound);
        write(task, "tests/fixtures/golden_pass.json", "{\"flow_m3_s\": 3.217, \"depth_m\": 1.25}");
        write(task, "environment/survey.csv", "x,z\n0,3.217\n");
    });
    assert!(ids(&leak).contains("A050"), "{:?}", leak.findings);
    let copied = audit_of(|task| {
        write(task, "tests/verify.py", &sound);
        write(task, "environment/check.py", &sound);
    });
    assert!(ids(&copied).contains("A051"), "{:?}", copied.findings);
    let none = audit_of(|task| std::fs::remove_dir_all(task.path.join("tests/fixtures")).unwrap());
    assert_eq!(ids(&none), BTreeSet::from(["A001".to_owned()]));
    let wrong = audit_of(|task| write(task, "tests/fixtures/golden_pass.json", "{\"flow_m3_s\": 1}"));
    assert_eq!(ids(&wrong), BTreeSet::from(["A002".to_owned()]));
    let prose = audit_of(|task| {
        write(task, "tests/fixtures/golden_pass.json", "the flow is fine");
        write(
            task,
            "tests/test.sh",
            "#!/bin/sh\ngrep -q fine /workspace/output.json && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt\n",
        );
    });
    assert_eq!(ids(&prose), BTreeSet::from(["A003".to_owned()]));
}

#[test]
fn standard_answers_are_audited_to_the_edge_of_their_tolerances() {
    let answers = r#"{"version": 1, "output": "output.json", "fields": {
        "flow_m3_s": {"type": "number", "value": 3.217, "unit": "m3/s", "rel_tol": 0.01},
        "depth_m": {"type": "number", "value": 1.25, "unit": "m", "abs_tol": 0.005}}}"#;
    let audit = audit_of(|task| {
        write(task, "tests/verify.py", aec_judge::scorer::STANDARD_VERIFY_PY);
        write(task, "tests/answers.json", answers);
    });
    assert_eq!(ids(&audit), BTreeSet::new(), "{:?}", audit.findings);
    assert_eq!(audit.mutants.good, audit.mutants.all);
    assert!(audit.equivalents.all > 15, "{:?}", audit.equivalents);
}

#[test]
fn the_medians_of_similar_tasks_are_an_answer_too() {
    let dir = tempfile::tempdir().unwrap();
    let verify = sound();
    let tasks: Vec<Task> = (0..4)
        .map(|index| {
            let task = write_task(&dir.path().join(index.to_string()));
            write(&task, "tests/verify.py", &verify);
            task
        })
        .collect();
    let siblings: Vec<&Task> = tasks[1..].iter().collect();
    let options = AuditOptions { siblings: &siblings, ..AuditOptions::default() };
    let audit = audit(&judge(), &tasks[0], options, &ContentStore::new(dir.path().join("store"))).unwrap();
    assert!(ids(&audit).contains("A030"), "the same task four times: {:?}", audit.findings);
    assert_eq!(audit.floor_agent.as_deref(), Some("the medians of similar tasks"));
}
