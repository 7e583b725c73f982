//! Verifiers that fail: whose fault it is, and what it costs.

use std::path::Path;
use std::sync::Arc;

use aec_base::content::ContentStore;
use aec_judge::audit::{AuditOptions, audit};
use aec_judge::cheat::{CHEATERS, Cheater, cheat};
use aec_judge::golden::submission_with_output;
use aec_judge::judge::Judge;
use aec_judge::pool::Pool;
use aec_judge::scorer::STANDARD_VERIFY_PY;
use aec_judge::submission::Submission;
use aec_judge::verdict::{CausedBy, Outcome, Verdict};
use aec_task::task::Task;

use crate::judge::{GOLDEN, SHIM, judge, write_task};

struct World {
    dir: tempfile::TempDir,
    task: Task,
    store: ContentStore,
    judges: [Judge; 2],
}

/// A task, and judges with cold and with warm rooms.
fn world() -> World {
    let dir = tempfile::tempdir().unwrap();
    let task = write_task(&dir.path().join("task"));
    let store = ContentStore::new(dir.path().join("store"));
    let judges = [judge(), Judge { pool: Some(Arc::new(Pool::default())), ..judge() }];
    World { dir, task, store, judges }
}

impl World {
    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.task.path.join(name), text).unwrap();
    }

    fn without_golden(self) -> Self {
        std::fs::remove_file(self.task.path.join("tests/fixtures/golden_pass.json")).unwrap();
        self
    }

    fn verdicts(&self, output: &[u8]) -> [Verdict; 2] {
        let submission = submission_with_output(&self.task, output, &self.store).unwrap();
        [0, 1].map(|at| self.judges[at].verdict(&self.task, &submission))
    }
}

fn told(verdict: &Verdict) -> (Outcome, Option<f64>, Option<CausedBy>, Option<&'static str>) {
    (verdict.outcome, verdict.reward, verdict.caused_by, verdict.fault_kind)
}

/// Each of these was a `verifier_fault`: tried again, and left out of the mean.
#[test]
fn a_submission_that_breaks_a_sound_verifier_earns_nothing_and_the_evidence_is_kept() {
    let world = world();
    let deep = "[".repeat(200_000);
    let long = format!("{{\"flow_m3_s\": {}, \"depth_m\": 1}}", "9".repeat(400));
    for (output, error) in [(deep.as_str(), "RecursionError"), (&long, "OverflowError"), ("{", "JSONDecode")]
    {
        for verdict in world.verdicts(output.as_bytes()) {
            let expected = (Outcome::Scored, Some(0.0), Some(CausedBy::Submission), Some("exit_code"));
            assert_eq!(told(&verdict), expected, "{verdict:?}");
            assert_eq!(verdict.fault.as_deref(), Some("it exited with 1"));
            assert!(verdict.stderr.contains(error), "{verdict:?}");
            let written = serde_json::to_value(&verdict).unwrap();
            assert_eq!((&written["caused_by"], &written["reward"]), (&"submission".into(), &0.0.into()));
        }
    }
    let [cold, warm] = world.verdicts(GOLDEN.as_bytes());
    assert_eq!((cold.reward, warm.reward, cold.caused_by), (Some(1.0), Some(1.0), None));
}

/// The word in the answer decides how the verifier fails.
const MANY_WAYS: &str = r#"#!/bin/bash
case "$(cat /workspace/output.json)" in
  code) exit 3 ;;
  signal) kill -9 $$ ;;
  slow) sleep 1000 ;;
  nothing) exit 0 ;;
  two) echo 1 > /logs/verifier/reward.txt ;;
  odd) echo '{"reward": 7}' > /logs/verifier/reward.json; exit 0 ;;
  link) ln -s /etc/passwd /logs/verifier/reward.json; exit 0 ;;
  shut) echo '{"reward": 1}' > /logs/verifier/reward.json; chmod 000 /logs/verifier/reward.json; exit 0 ;;
  memory) python3 -c 'x = bytearray(2_000_000_000)
for i in range(0, len(x), 4096): x[i] = 1' || exit 4 ;;
  disk) head -c 2G /dev/zero > /tmp/full || exit 5 ;;
esac
echo '{"reward": 1}' > /logs/verifier/reward.json
"#;

#[test]
fn however_a_verifier_fails_the_submission_pays_if_the_golden_answer_passes() {
    let mut world = world();
    world.task.verifier.timeout_sec = 3.0;
    world.write("tests/test.sh", MANY_WAYS);
    for (word, kinds) in [
        ("code", &["exit_code"][..]),
        ("signal", &["signal"]),
        ("slow", &["deadline"]),
        ("nothing", &["no_reward"]),
        ("two", &["two_rewards"]),
        ("odd", &["bad_reward"]),
        ("link", &["bad_reward"]),
        ("memory", &["out_of_memory", "exit_code"]),
        // Files of a room count as its memory too, where a control group counts.
        ("disk", &["exit_code", "out_of_memory"]),
    ] {
        let [verdict, _] = world.verdicts(word.as_bytes());
        let (outcome, reward, by, kind) = told(&verdict);
        let expected = (Outcome::Scored, Some(0.0), Some(CausedBy::Submission));
        assert_eq!((outcome, reward, by), expected, "{word}: {verdict:?}");
        assert!(kinds.contains(&kind.unwrap()), "{word}: {verdict:?}");
    }
    // Root reads the reward all the same, an ordinary user does not: nobody earns it.
    let [verdict, _] = world.verdicts(b"shut");
    assert_eq!(verdict.outcome, Outcome::Scored, "{verdict:?}");
}

#[test]
fn a_verifier_that_fails_on_its_golden_answer_is_the_tasks_fault() {
    let world = world();
    world.write("tests/verify.py", "raise SystemExit(3)\n");
    for output in [GOLDEN, "{}", "["] {
        for verdict in world.verdicts(output.as_bytes()) {
            let expected = (Outcome::VerifierFault, None, Some(CausedBy::Task), Some("exit_code"));
            assert_eq!(told(&verdict), expected, "{verdict:?}");
        }
    }
    std::fs::remove_file(world.task.path.join("tests/verify.py")).unwrap();
    std::fs::remove_file(world.task.path.join("tests/test.sh")).unwrap();
    let [verdict, _] = world.verdicts(GOLDEN.as_bytes());
    let expected = (Outcome::VerifierFault, None, Some(CausedBy::Task), Some("no_verifier"));
    assert_eq!(told(&verdict), expected, "{verdict:?}");
}

/// Without a golden answer nothing may be gained either: the verifier is asked about answers of agents that do nothing.
#[test]
fn without_a_golden_answer_an_agent_that_could_have_broken_the_verifier_pays() {
    let world = world().without_golden();
    // It reads an empty object, so it works.
    let [verdict, _] = world.verdicts("[".repeat(200_000).as_bytes());
    assert_eq!(told(&verdict).2, Some(CausedBy::Submission), "{verdict:?}");
    assert_eq!((verdict.outcome, verdict.reward), (Outcome::Scored, Some(0.0)));
    // It fails on all that the task vouches for.
    world.write(
        "tests/verify.py",
        "import json\njson.load(open('/workspace/output.json'))['flow_m3_s'] + 1\n",
    );
    let [verdict, _] = world.verdicts(b"[");
    let expected = (Outcome::AgentFault, None, Some(CausedBy::Unknown), Some("exit_code"));
    assert_eq!(told(&verdict), expected, "{verdict:?}");
    assert!(!verdict.may_pass, "another attempt would be free");
    // Doing nothing must not be better than a wrong answer. Before, it was left out of the mean.
    let untouched = Submission::from_contents(
        [("survey.csv".to_owned(), std::fs::read(world.task.path.join("environment/survey.csv")).unwrap())],
        &world.store,
    );
    let verdict = world.judges[0].verdict(&world.task, &untouched.unwrap());
    assert_eq!((verdict.outcome, verdict.caused_by), (Outcome::AgentFault, Some(CausedBy::Unknown)));
}

/// The verifier had no byte of disk left, which was a `verifier_fault` and cost the agent nothing.
#[test]
fn a_submission_that_fills_its_disk_leaves_the_verifier_its_own() {
    let mut world = world();
    world.task.environment.storage_mb = 8;
    world.write(
        "tests/verify.py",
        "import json, os, pathlib\n\
         open('/tmp/scratch', 'wb').write(os.urandom(6 << 20))\n\
         for n in range(1000): open(f'/logs/n{n}', 'w').close()\n\
         pathlib.Path('/logs/verifier/reward.json').write_text(json.dumps({'reward': 0.25}))\n",
    );
    let large = vec![7; 4 << 20];
    let names = (0..60).map(|number| (format!("fill-{number}"), large.clone()));
    let many = (0..9000).map(|number| (format!("small-{number}"), b"x".to_vec()));
    for submission in [
        Submission::from_contents(names.collect::<Vec<_>>(), &world.store).unwrap(),
        Submission::from_contents(many.collect::<Vec<_>>(), &world.store).unwrap(),
    ] {
        for judge in &world.judges {
            let verdict = judge.verdict(&world.task, &submission);
            assert_eq!((verdict.outcome, verdict.reward), (Outcome::Scored, Some(0.25)), "{verdict:?}");
        }
    }
}

/// The answers that break verifiers, without the room: what the cheaters 51 to 80 write.
fn hostile_outputs(keys: &[&str]) -> Vec<(String, Vec<u8>)> {
    let put = |value: &str| -> Vec<u8> {
        let pairs: Vec<String> = keys.iter().map(|key| format!("\"{key}\": {value}")).collect();
        format!("{{{}}}", pairs.join(", ")).into_bytes()
    };
    let mut outputs: Vec<(String, Vec<u8>)> = [
        ("a deep list", put(&"[".repeat(200_000))),
        ("deep objects", put(&"{\"a\":".repeat(200_000))),
        ("deep but whole", put(&format!("{}{}", "[".repeat(960), "]".repeat(960)))),
        ("deep and whole", put(&format!("{}{}", "[".repeat(60_000), "]".repeat(60_000)))),
        ("400 digits", put(&"9".repeat(400))),
        ("5,000 digits", put(&"9".repeat(5000))),
        ("500,000 digits", put(&"9".repeat(500_000))),
        ("a fraction of 500,000 digits", put(&format!("0.{}", "3".repeat(500_000)))),
        ("1e999999", put("1e999999")),
        ("-1e-999999", put("-1e-999999")),
        ("NaN", put("NaN")),
        ("-Infinity", put("-Infinity")),
        ("-0.0", put("-0.0")),
        ("text inf", put("\"inf\"")),
        ("text 1e400", put("\"1e400\"")),
        ("Arabic digits", put("\"\u{661}\u{662}\"")),
        ("half a character", put("\"\\ud800\"")),
        ("half a character as a key", b"{\"\\udfff\": 1}".to_vec()),
        ("a null character", put("\"\\u0000\"")),
        ("null", b"null".to_vec()),
        ("a text", b"\"x\"".to_vec()),
        ("a number", b"1".to_vec()),
        ("true", b"true".to_vec()),
        ("nulls", put("null")),
        ("truths", put("true")),
        ("objects", put("{\"value\": [true, null, {\"unit\": []}]}")),
        ("lists", put("[[[]], {}, null]")),
        ("nothing", Vec::new()),
        ("a byte", vec![0]),
        ("zero bytes", vec![0; 100_000]),
        ("not UTF-8", b"{\"result\": \"\xff\xfe\x80\"}".to_vec()),
        ("UTF-16", "{\"result\": 1}".encode_utf16().flat_map(u16::to_le_bytes).collect()),
        ("a byte-order mark", b"\xef\xbb\xbf{}".to_vec()),
        ("only space", vec![b' '; 3 << 20]),
        ("only brackets", "```json\n{[(".repeat(100_000).into_bytes()),
        ("a long text", put(&format!("\"{}\"", "x".repeat(900_000)))),
        ("longer than allowed", put(&format!("\"{}\"", "x".repeat(4 << 20)))),
        ("comments", "/* ".repeat(100_000).into_bytes()),
        ("a table", format!("{}\n{}\n", "|a".repeat(50_000), "|-".repeat(50_000)).into_bytes()),
        ("tags", format!("{}{}", "<b>".repeat(50_000), "<!--".repeat(50_000)).into_bytes()),
    ]
    .map(|(name, bytes)| (name.to_owned(), bytes))
    .into();
    let many: Vec<String> = (0..100_000).map(|number| format!("\"k{number}\": {number}")).collect();
    outputs.push(("100,000 keys".to_owned(), format!("{{{}}}", many.join(",")).into_bytes()));
    let again: Vec<String> = (0..50_000).map(|number| format!("\"{}\": {number}", keys[0])).collect();
    outputs.push(("one key again and again".to_owned(), format!("{{{}}}", again.join(",")).into_bytes()));
    outputs
}

/// The verifiers of `init` and `task new` ended with `RecursionError` and `OverflowError`.
#[test]
fn the_verifiers_that_this_program_writes_survive_everything() {
    let world = world();
    let scaffold = Path::new(env!("CARGO_MANIFEST_DIR")).join("../task/scaffold");
    let answers = r#"{"version": 1, "output": "output.json", "fields": {"result": {"type": "number", "value": 12.5, "rel_tol": 0.01}, "items": {"type": "list", "items": [1, 2], "item": {"type": "number", "rel_tol": 0.01}}}}"#;
    let own = |name: &str| std::fs::read_to_string(scaffold.join(name)).unwrap();
    let standard =
        [("tests/verify.py", STANDARD_VERIFY_PY.to_owned()), ("tests/answers.json", answers.to_owned())];
    let verifiers = [
        ("skeleton", vec![("tests/verify.py", own("skeleton/tests/verify.py"))], ["result"]),
        ("example", vec![("tests/verify.py", own("example/tests/verify.py"))], ["voltage_drop_v"]),
        ("standard", standard.to_vec(), ["result"]),
    ];
    for (name, files, keys) in verifiers {
        for (place, text) in &files {
            world.write(place, text);
        }
        let cold = Judge { native: false, ..world.judges[1].clone() };
        for (what, output) in hostile_outputs(&keys) {
            let submission = submission_with_output(&world.task, &output, &world.store).unwrap();
            let verdict = cold.verdict(&world.task, &submission);
            let end = (verdict.outcome, verdict.reward, verdict.exit_code, verdict.caused_by);
            assert_eq!(end, (Outcome::Scored, Some(0.0), Some(0), None), "{name}, {what}: {verdict:?}");
        }
    }
}

/// Verifiers of library templates get the same, as files that they must refuse without failing.
#[test]
fn the_verifiers_of_the_library_survive_everything() {
    let world = world();
    let template =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../library/structural/column-calculation-report");
    let python = world.judges[0].python.as_ref().unwrap();
    let made = crate::judge::generated(world.dir.path(), &template);
    let place = world.dir.path().join("report.md");
    let logs = world.dir.path().join("logs");
    for (what, output) in hostile_outputs(&["C01", "column"]) {
        std::fs::write(&place, output).unwrap();
        let ended = std::process::Command::new(&python.path)
            .arg("-I")
            .arg(made.join("tests/verify.py"))
            .args(["--instance".as_ref(), made.join("tests/instance.json").as_os_str()])
            .args(["--submission".as_ref(), place.as_os_str()])
            .args(["--logs".as_ref(), logs.as_os_str()])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{what}: {said}");
        let reward: serde_json::Value =
            serde_json::from_slice(&std::fs::read(logs.join("reward.json")).unwrap()).unwrap();
        assert_eq!(reward["reward"].as_f64(), Some(0.0), "{what}");
    }
}

/// What every cheater gets, without looking at the host: also run as an ordinary user, below.
#[test]
fn no_cheater_leaves_the_denominator() {
    let world = world();
    let names: Vec<&str> = CHEATERS.iter().map(|cheater| cheater.name).collect();
    assert!(names.len() >= 80, "{} cheaters", names.len());
    let ended = aec_base::parallel::map(CHEATERS, 1, |cheater| {
        let store = ContentStore::new(world.dir.path().join(cheater.name));
        cheat(&world.judges[0], &world.task, cheater, &store)
            .map(|result| (result.counts(), result.reward(), format!("{result:?}")))
            .map_err(|error| error.to_string())
    });
    let free: Vec<String> = names
        .iter()
        .zip(ended)
        .filter_map(|(name, ended)| match ended {
            Ok((true, reward, _)) if reward <= 0.0 => None,
            other => Some(format!("{name}: {other:?}")),
        })
        .collect();
    assert!(free.is_empty(), "{}", free.join("\n"));
}

/// The tests of cheaters can fail: with a verifier that believes what lies in the workspace, and with one whose
/// failures count for nobody.
#[test]
fn an_audit_finds_a_cheater_that_gains() {
    let world = world();
    let one: Vec<Cheater> =
        CHEATERS.iter().filter(|cheater| cheater.name.starts_with("09")).copied().collect();
    let options = AuditOptions { cheaters: &one, ..AuditOptions::default() };
    let audited = || {
        let audit = audit(&world.judges[0], &world.task, options, &world.store).unwrap();
        let found = audit.findings.iter().filter(|finding| finding.id.as_deref() == Some("A060"));
        (audit.cheaters.good, found.map(|finding| finding.what.clone()).collect::<Vec<_>>())
    };
    assert_eq!(audited(), (1, Vec::new()));
    let sound = std::fs::read_to_string(world.task.path.join("tests/verify.py")).unwrap();
    let trusting = "import pathlib\nplanted = pathlib.Path('/workspace/reward.json')\nif planted.exists():\n    \
                    pathlib.Path('/logs/verifier/reward.json').write_text(planted.read_text())\n    raise SystemExit\n";
    world.write("tests/verify.py", &format!("{trusting}{sound}"));
    assert_eq!(audited(), (0, vec!["the cheater 09-plant-tests earns 1".to_owned()]));
    world.write("tests/verify.py", "raise SystemExit(3)\n");
    let result = cheat(&world.judges[0], &world.task, &one[0], &world.store).unwrap();
    assert!(!result.counts(), "{result:?}");
}

/// Runs what is above again without privileges.
#[test]
#[cfg_attr(not(ordinary_user), ignore = "needs root, and a working copy that other users can read")]
fn an_ordinary_user_judges_like_root() {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;
    const NOBODY: u32 = 65534;
    let copies = tempfile::tempdir().unwrap();
    std::fs::set_permissions(copies.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let (tests, shim) = (copies.path().join("tests"), copies.path().join("aec-bench"));
    std::fs::copy(std::env::current_exe().unwrap(), &tests).unwrap();
    std::fs::copy(env!("CARGO_BIN_EXE_aec-bench"), &shim).unwrap();
    let output = std::process::Command::new(tests)
        .args([
            "judge::blame::",
            "--skip",
            "an_ordinary_user",
            "--skip",
            "of_the_library",
            "--test-threads=2",
        ])
        .env(SHIM, shim)
        .env("PATH", "/usr/bin:/bin")
        .env_remove("HOME")
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}\n{errors}");
    assert!(!said.contains("running 0 tests"), "{said}");
}
