//! Workers that violate the protocol. They are shell scripts in place of the interpreter.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use crate::worker::world::{Scripted, job, play, said, setup};
use aec_eval::worker::{Cause, WorkerError, WorkerPool, worker_variables};
use serde_json::json;

const HELLO: &str = r#"printf '{"hello":{"protocol":1,"python":"3","pid":1}}\n' >&0"#;
const LOADED: &str = r#"printf '{"loaded":{"interface":"v0","class_name":"X","version_info":{},"example_ids":[0],"pass_threshold":0.5,"has_group_rewards":false,"tools":[],"max_turns":null,"sampling_args":{},"env_args":{},"examples_digest":"","generates_and_scores_at_once":false,"warnings":[]}}\n' >&0"#;

/// An interpreter that runs these lines.
fn script(lines: &[&str]) -> (PathBuf, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("python");
    std::fs::write(&path, format!("#!/bin/sh\n{}\n", lines.join("\n"))).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    (path, directory)
}

async fn start(lines: &[&str], load: Duration) -> Result<WorkerPool, WorkerError> {
    let (python, _directory) = script(lines);
    let (mut setup, _logs) = setup(&python, "anything", &json!({}));
    setup.limits.load = load;
    setup.limits.restarts = 0;
    loop {
        match WorkerPool::start(setup.clone()).await {
            // Another test that was just starting a process kept the script open for a moment.
            Err(WorkerError::Start { reason, .. }) if reason.contains("Text file busy") => {}
            outcome => return outcome,
        }
    }
}

async fn refusal(lines: &[&str]) -> WorkerError {
    match start(lines, Duration::from_secs(20)).await {
        Ok(_) => panic!("it was started"),
        Err(error) => error,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_none_fails_to_start() {
    let (setup, _logs) = setup(std::path::Path::new("/nowhere/python"), "anything", &json!({}));
    let Err(error) = WorkerPool::start(setup).await else { panic!("it was started") };
    assert!(matches!(error, WorkerError::Start { .. }), "{error}");
    assert_eq!(error.problem().id.as_deref(), Some("R040"));
    let error = refusal(&["echo no Python at all >&2", "exit 5"]).await;
    let WorkerError::Died(death) = &error else { panic!("{error}") };
    assert_eq!(
        (&death.cause, death.last_lines.as_slice()),
        (&Cause::Exited(5), &["no Python at all".to_owned()][..])
    );
    let error = refusal(&["kill -9 $$"]).await;
    assert!(matches!(&error, WorkerError::Died(death) if death.cause == Cause::Signal(9)), "{error}");
    let error = refusal(&[r#"printf '{"hello":{"protocol":99}}\n' >&0"#, "sleep 60"]).await;
    assert!(matches!(error, WorkerError::Protocol { found: 99, .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_message_is_the_end_of_the_worker() {
    for (line, shown) in [
        ("printf 'hello?\\n' >&0", "hello?"),
        ("printf '{}\\n' >&0", "{}"),
        ("printf '\\n' >&0", ""),
        ("printf '{\"surprise\":{}}\\n' >&0", "surprise"),
        ("printf '{\"hello\":{\"protocol\":\"one\"}}\\n' >&0", "one"),
        ("printf '{\"hello\":{\"protocol\":1},\"hello\":{\"protocol\":1}}\\n' >&0", "hello"),
        ("printf '\\377\\376\\n' >&0", "\u{fffd}"),
        (
            "printf '{\"rows\":{\"job\":1,\"lines\":5}}\\n1\\n' >&0; exec 0<&-; exec 0</dev/null",
            "rows end too early",
        ),
    ] {
        let error = refusal(&[line, "sleep 60"]).await;
        let WorkerError::Died(death) = &error else { panic!("{error}") };
        assert!(matches!(&death.cause, Cause::Malformed(text) if text.contains(shown)), "{line}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_without_end_is_ended() {
    let Err(error) = start(&[HELLO, "sleep 60"], Duration::from_millis(300)).await else {
        panic!("it was started")
    };
    assert!(matches!(error, WorkerError::LoadTimeout { .. }), "{error}");
    assert_eq!(error.problem().id.as_deref(), Some("R044"));
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_in_the_middle_of_a_job_fails_the_job() {
    let pool = start(
        &[HELLO, "read load", LOADED, "read run", "echo garbage >&0", "sleep 60"],
        Duration::from_secs(20),
    )
    .await
    .unwrap();
    let caller = Scripted::new(|_| said("x"));
    let error = play(&pool, job(&[(0, 0)], false), &caller).await.unwrap_err();
    assert!(
        matches!(&error, WorkerError::Died(death) if death.cause == Cause::Malformed("garbage".to_owned())),
        "{error}"
    );
    // Events and calls of unknown jobs are ignored.
    let stray = r#"printf '{"generated":{"job":77,"errors":[],"scored":false}}\n{"hang_up":{"call":1,"job":77}}\n{"call":{"call":1,"job":77,"model":"m","messages":[]}}\n{"dropped":{"job":3}}\n{"failed":{"job":1,"error":"E","message":"m","traceback":""}}\n' >&0"#;
    let pool = start(&[HELLO, "read load", LOADED, "read run", stray, "sleep 60"], Duration::from_secs(20))
        .await
        .unwrap();
    let error = play(&pool, job(&[(0, 0)], false), &caller).await.unwrap_err();
    assert!(matches!(&error, WorkerError::Job { error, .. } if error == "E"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn children_of_a_worker_end_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pid");
    let child = format!("sleep 600 & echo $! > {}", file.display());
    let pool =
        start(&[HELLO, "read load", &child, LOADED, "read run"], Duration::from_secs(20)).await.unwrap();
    let pid = std::fs::read_to_string(&file).unwrap();
    let pid = rustix::process::Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    rustix::process::test_kill_process(pid).unwrap();
    drop(pool);
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    // The process that inherits the child takes a moment to notice its end.
    while runs(pid) {
        assert!(std::time::Instant::now() < deadline, "the child runs on");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Whether a process exists and is not a zombie.
fn runs(pid: rustix::process::Pid) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    status.rsplit(')').next().is_some_and(|rest| !rest.trim_start().starts_with('Z') && !rest.is_empty())
}

#[test]
fn workers_see_few_variables_and_no_keys() {
    let (mut setup, _logs) = setup(std::path::Path::new("/opt/venv/bin/python"), "anything", &json!({}));
    setup.surroundings = [
        ("PATH", "/usr/bin"),
        ("HOME", "/home/me"),
        ("LC_ALL", "C"),
        ("OPENAI_API_KEY", "secret"),
        ("HF_TOKEN", "secret"),
        ("PRIME_API_KEY", "secret"),
        ("PYTHONDONTWRITEBYTECODE", "1"),
    ]
    .map(|(name, value)| (name.into(), value.into()))
    .to_vec();
    setup.variables.clear();
    let seen = worker_variables(&setup);
    let get = |name: &str| seen.get(std::ffi::OsStr::new(name)).and_then(|value| value.to_str());
    assert_eq!(get("PATH"), Some("/opt/venv/bin:/usr/bin"));
    assert_eq!((get("HOME"), get("LC_ALL")), (Some("/home/me"), Some("C")));
    for name in ["OPENAI_API_KEY", "OPENAI_BASE_URL", "HF_TOKEN", "PRIME_API_KEY", "PYTHONDONTWRITEBYTECODE"]
    {
        assert_eq!(get(name), None, "{name}");
    }
    setup.gateway = Some(aec_eval::worker::Gateway {
        base_url: "http://localhost/v1".to_owned(),
        token: "ours".to_owned(),
    });
    assert!(!format!("{setup:?}").contains("ours"), "a token is not printed");
    let seen = worker_variables(&setup);
    assert_eq!(
        seen.get(std::ffi::OsStr::new("OPENAI_API_KEY")).and_then(|value| value.to_str()),
        Some("ours")
    );
}

#[test]
fn one_worker_is_enough_for_many_rollouts() {
    use aec_eval::worker::WorkerCount::{Auto, Exactly};
    assert_eq!((Auto.resolve(0), Auto.resolve(1), Auto.resolve(256)), (1, 1, 1));
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    assert_eq!(Auto.resolve(usize::MAX), processors);
    assert_eq!((Exactly(0).resolve(1), Exactly(7).resolve(1)), (1, 7));
}
