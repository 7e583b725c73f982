//! Verdicts on tasks that use only the documented contract.

use aec_base::content::ContentStore;
use aec_judge::golden::submission_with_output;
use aec_judge::verdict::{Outcome, Verdict};

use crate::judge::{GOLDEN, judge, write_task};

/// The verdict on a golden answer by a verifier with this script.
fn verdict_of(test_sh: &str) -> Verdict {
    let dir = tempfile::tempdir().unwrap();
    let task = write_task(&dir.path().join("task"));
    std::fs::write(task.path.join("tests/test.sh"), test_sh).unwrap();
    let submission =
        submission_with_output(&task, GOLDEN.as_bytes(), &ContentStore::new(dir.path().join("store")))
            .unwrap();
    judge().verdict(&task, &submission)
}

fn reward_of(json: &str) -> Verdict {
    verdict_of(&format!("#!/bin/sh\nprintf '%s' '{json}' > /logs/verifier/reward.json\n"))
}

#[test]
fn the_task_sees_its_places_and_the_submission() {
    let verdict = verdict_of(
        "#!/bin/bash\nset -e\ncat /workspace/survey.csv /workspace/output.json\ntest $(pwd) = /tests\n\
         test ! -e /tests/fixtures/golden_pass.json\necho 0.5 > /logs/verifier/reward.txt\n\
         echo '{\"a\": 1}' > /logs/verifier/details.json\necho done >&2\n",
    );
    assert_eq!((verdict.outcome, verdict.reward), (Outcome::Scored, Some(0.5)), "{verdict:?}");
    assert_eq!(verdict.stdout, format!("x,z\n0,1\n{GOLDEN}"));
    assert_eq!(verdict.stderr, "done\n");
    assert_eq!(verdict.details, Some(serde_json::json!({"a": 1})));
}

#[test]
fn anything_but_a_clean_end_with_one_valid_reward_is_a_fault() {
    for (script, reason) in [
        ("exit 0", "neither reward.json nor reward.txt"),
        ("echo '{\"reward\": 1}' > /logs/verifier/reward.json; exit 3", "it exited with 3"),
        ("echo '{\"reward\": 1}' > /logs/verifier/reward.json; kill -9 $$", "signal 9"),
        ("echo '{\"reward\": 1}' > /logs/verifier/reward.json; echo 1 > /logs/verifier/reward.txt", "both"),
        ("ln -s /tests/test.sh /logs/verifier/reward.json", "cannot be read"),
        ("mkdir /logs/verifier/reward.json", "cannot be read"),
        ("mkfifo /logs/verifier/reward.json", "cannot be read"),
        ("head -c 100000 /dev/zero > /logs/verifier/reward.json", "cannot be read"),
        ("rm -r /logs/verifier", "neither"),
    ] {
        let verdict = verdict_of(&format!("#!/bin/bash\n{script}\n"));
        assert_eq!(
            (verdict.outcome, verdict.reward),
            (Outcome::VerifierFault, None),
            "{script}: {verdict:?}"
        );
        assert!(verdict.fault.as_ref().unwrap().contains(reason), "{script}: {verdict:?}");
    }
    for json in [
        "",
        "NaN",
        "{\"reward\": NaN}",
        "{\"reward\": 2}",
        "{\"reward\": true}",
        "{\"reward\": \"1\"}",
        "[1]",
    ] {
        let verdict = reward_of(json);
        assert_eq!((verdict.outcome, verdict.reward), (Outcome::VerifierFault, None), "{json}: {verdict:?}");
    }
    assert_eq!(reward_of("{\"reward\": 1}").reward, Some(1.0));
}

#[test]
fn the_deadline_ends_a_verifier_and_all_it_started() {
    let dir = tempfile::tempdir().unwrap();
    let mut task = write_task(&dir.path().join("task"));
    task.verifier.timeout_sec = 0.5;
    let script = "#!/bin/bash\ntrap '' TERM\n(setsid sleep 1000 &)\necho '{\"reward\": 1}' > /logs/verifier/reward.json\nsleep 1000\n";
    std::fs::write(task.path.join("tests/test.sh"), script).unwrap();
    let submission =
        submission_with_output(&task, b"{}", &ContentStore::new(dir.path().join("store"))).unwrap();
    let verdict = judge().verdict(&task, &submission);
    assert_eq!((verdict.outcome, verdict.reward), (Outcome::VerifierFault, None));
    assert!(verdict.fault.unwrap().contains("more than its 0.5 seconds"));
}

#[test]
fn a_verifier_without_entry_or_with_links_is_a_fault() {
    let dir = tempfile::tempdir().unwrap();
    let task = write_task(&dir.path().join("task"));
    let submission =
        submission_with_output(&task, GOLDEN.as_bytes(), &ContentStore::new(dir.path().join("store")))
            .unwrap();
    std::os::unix::fs::symlink("/etc/passwd", task.path.join("tests/link")).unwrap();
    let verdict = judge().verdict(&task, &submission);
    assert!(verdict.fault.unwrap().contains("not a regular file"));
    std::fs::remove_file(task.path.join("tests/link")).unwrap();
    std::fs::remove_file(task.path.join("tests/test.sh")).unwrap();
    assert_eq!(judge().verdict(&task, &submission).reward, Some(1.0), "verify.py alone is run by itself");
    std::fs::remove_file(task.path.join("tests/verify.py")).unwrap();
    let verdict = judge().verdict(&task, &submission);
    assert_eq!((verdict.outcome, verdict.reward), (Outcome::VerifierFault, None));
}

#[test]
fn no_network_and_no_memory_without_bounds() {
    let verdict = verdict_of("#!/bin/bash\nexec 3<>/dev/tcp/127.0.0.1/1 || exit 9\n");
    assert_eq!(verdict.exit_code, Some(9));
    let verdict = verdict_of(
        "#!/bin/bash\npython3 -c 'x = bytearray(2_000_000_000)\nfor i in range(0, len(x), 4096): x[i] = 1'\n",
    );
    assert_eq!(verdict.outcome, Outcome::VerifierFault, "{verdict:?}");
}
