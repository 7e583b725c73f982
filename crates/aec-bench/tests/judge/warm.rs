//! Warm rooms give the same verdicts as cold ones, and nothing passes from one verification to the next.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aec_base::content::ContentStore;
use aec_judge::golden::submission_with_output;
use aec_judge::judge::Judge;
use aec_judge::pool::Pool;
use aec_judge::verdict::{Outcome, Verdict};
use aec_task::task::Task;

use crate::judge::{GOLDEN, VERIFY, judge, write_task};

/// The interpreters of this process are those of one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

struct Both {
    _alone: MutexGuard<'static, ()>,
    _dir: tempfile::TempDir,
    task: Task,
    store: ContentStore,
    cold: Judge,
    warm: Judge,
}

fn both() -> Both {
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = tempfile::tempdir().unwrap();
    let task = write_task(&dir.path().join("task"));
    let store = ContentStore::new(dir.path().join("store"));
    let cold = judge();
    let warm = Judge { pool: Some(Arc::new(Pool::default())), ..judge() };
    Both { _alone: alone, _dir: dir, task, store, cold, warm }
}

impl Both {
    fn write(&self, verify: &str) {
        std::fs::write(self.task.path.join("tests/verify.py"), verify).unwrap();
    }

    fn verdict(&self, judge: &Judge, output: &str) -> Verdict {
        judge
            .verdict(&self.task, &submission_with_output(&self.task, output.as_bytes(), &self.store).unwrap())
    }
}

#[test]
fn a_warm_verdict_is_the_cold_one() {
    let both = both();
    let cases = [
        VERIFY.to_owned(),
        "import sys; sys.exit('told')".to_owned(),
        "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)".to_owned(),
        "raise ValueError('wrong')".to_owned(),
        "def f(): g()\ndef g(): 1 / 0\nf()".to_owned(),
        "this is not python".to_owned(),
        "import os; os.kill(os.getpid(), 9)".to_owned(),
        "import os; os._exit(7)".to_owned(),
        "import sys, os, json; open('/logs/verifier/details.json', 'w').write(json.dumps([sys.argv, __name__, __file__, os.getcwd(), sorted(k for k in os.environ if k != 'PWD' and k != 'SHLVL' and k != '_' and k != 'OLDPWD'), hash('x'), os.getuid(), sys.path[0]])); open('/logs/verifier/reward.txt', 'w').write('1')".to_owned(),
        "import atexit, threading; atexit.register(lambda: open('/logs/verifier/reward.txt', 'w').write('0.25')); threading.Thread(target=lambda: print('thread')).start()".to_owned(),
        "import helper; open('/logs/verifier/reward.txt', 'w').write(helper.REWARD)".to_owned(),
        "import multiprocessing\nif __name__ == '__main__':\n    with multiprocessing.get_context('fork').Pool(2) as p: print(p.map(abs, [-1, -2]))\n    open('/logs/verifier/reward.txt', 'w').write('1')".to_owned(),
        "print('\\u00e9\\u2212'); open('/logs/verifier/reward.json', 'w').write('{\"reward\": 0.5}')".to_owned(),
        "open('/tests/x', 'w')".to_owned(),
        "input()".to_owned(),
    ];
    std::fs::write(both.task.path.join("tests/helper.py"), "REWARD = '0.75'\n").unwrap();
    for (index, verify) in cases.iter().enumerate() {
        both.write(verify);
        for output in [GOLDEN, "{}", "not json"] {
            let (cold, warm) = (both.verdict(&both.cold, output), both.verdict(&both.warm, output));
            let parts = |verdict: &Verdict| {
                // A shell also prints which of its commands was killed.
                let said = if verdict.exit_code == Some(137) { "" } else { &verdict.stderr };
                let stderr = said.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>();
                (
                    verdict.outcome,
                    verdict.reward,
                    verdict.fault.clone(),
                    verdict.details.clone(),
                    verdict.exit_code,
                    verdict.stdout.clone(),
                    stderr,
                )
            };
            assert_eq!(parts(&cold), parts(&warm), "case {index}: {verify}");
        }
    }
}

#[test]
fn nothing_passes_from_one_verification_to_the_next() {
    let both = both();
    let dirty = "
import json, os, signal, subprocess, threading, time
json.loads = lambda text: {'flow_m3_s': 3.217, 'depth_m': 1.25}
for place in ('/tmp', '/dev/shm', '/home/agent', '/logs', '/workspace'):
    open(place + '/left', 'w').write('left')
subprocess.Popen(['sh', '-c', 'while :; do mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt; done'], start_new_session=True)
for pid in range(2, 50):
    for name in ('mem', 'environ', 'maps'):
        try:
            open(f'/proc/{pid}/{name}', 'r+b').read(1)
        except OSError:
            pass
open('/logs/verifier/reward.json', 'w').write('{\"reward\": 0}')
";
    let look = "
import json, os, pathlib
left = [place for place in ('/tmp', '/dev/shm', '/home/agent', '/logs', '/workspace') if os.path.exists(place + '/left')]
others = [pid for pid in os.listdir('/proc') if pid.isdigit() and int(pid) not in (1, os.getpid(), os.getppid())]
pathlib.Path('/logs/verifier/details.json').write_text(json.dumps([left, len(others), json.loads('[1]')]))
pathlib.Path('/logs/verifier/reward.json').write_text('{\"reward\": 0}')
";
    for _ in 0..5 {
        both.write(dirty);
        let verdict = both.verdict(&both.warm, "{}");
        assert_ne!(verdict.reward, Some(1.0), "{verdict:?}");
        both.write(look);
        let verdict = both.verdict(&both.warm, "{}");
        assert_eq!(verdict.details, Some(serde_json::json!([[], 0, [1]])), "{verdict:?}");
    }
}

#[test]
fn a_verifier_that_attacks_the_interpreter_gets_a_cold_room() {
    let both = both();
    both.write("import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\nopen('/logs/verifier/reward.txt', 'w').write('0.5')\n");
    let verdict = both.verdict(&both.warm, "{}");
    // In a cold room the parent is the shell of test.sh.
    let fault = Some("it was ended by signal 9".to_owned());
    assert_eq!((verdict.outcome, verdict.reward, verdict.fault), (Outcome::VerifierFault, None, fault));
    both.write(VERIFY);
    assert_eq!(both.verdict(&both.warm, GOLDEN).reward, Some(1.0), "and the next one is served as usual");
}

#[test]
fn a_warm_deadline_is_a_deadline() {
    let mut both = both();
    both.task.verifier.timeout_sec = 0.5;
    both.write("import time\nopen('/logs/verifier/reward.txt', 'w').write('1')\ntime.sleep(100)\n");
    for judge in [&both.warm, &both.cold] {
        let verdict = both.verdict(judge, "{}");
        assert_eq!((verdict.outcome, verdict.reward), (Outcome::VerifierFault, None), "{verdict:?}");
    }
    both.task.verifier.timeout_sec = 20.0;
    both.write(VERIFY);
    assert_eq!(both.verdict(&both.warm, GOLDEN).reward, Some(1.0));
}

/// Tries everything on every other process that it finds: sets limits and priorities, and stops it, also a moment after
/// the verification has ended.
const ATTACK: &str = r#"
import os, resource, signal, sys, time
def attack():
    for pid in [int(name) for name in os.listdir("/proc") if name.isdigit()]:
        for act in [
            lambda: resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, 0)),
            lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE, (4, 4)),
            lambda: resource.prlimit(pid, resource.RLIMIT_CPU, (1, 1)),
            lambda: os.setpriority(os.PRIO_PROCESS, pid, 19),
            lambda: open(f"/proc/{pid}/oom_score_adj", "w").write("1000"),
        ]:
            if pid not in (os.getpid(), 1):
                try:
                    act()
                except OSError:
                    pass
parent = os.getppid()
attack()
if "in_process" not in globals() and os.fork() == 0:
    os.setsid()
    while os.path.exists(f"/proc/{parent}"):
        pass
    for pid in range(2, 40):
        if pid != os.getpid():
            try:
                os.kill(pid, signal.SIGSTOP)
            except OSError:
                pass
"#;

/// An agent's program changed the waiting interpreter for all later verifications, of other agents and tasks too: an
/// agent that is always right got 0.31 of 100.
#[test]
fn a_program_that_a_verifier_runs_reaches_no_later_verification() {
    let both = both();
    let head = "import pathlib, subprocess, sys\npathlib.Path('/logs/verifier/reward.json').write_text('{\"reward\": 0}')\n";
    let child = format!("{head}subprocess.run([sys.executable, '-I', '/workspace/output.json'])\n");
    let within = format!("{head}in_process = True\nexec(open('/workspace/output.json').read())\n");
    for verify in [&child, &within].into_iter().cycle().take(6) {
        both.write(verify);
        let verdict = both.verdict(&both.warm, ATTACK);
        assert!(verdict.reward.unwrap_or(0.0) <= 0.0, "{verdict:?}");
        for _ in 0..4 {
            both.write(VERIFY);
            let verdict = both.verdict(&both.warm, GOLDEN);
            assert_eq!((verdict.outcome, verdict.reward), (Outcome::Scored, Some(1.0)), "{verdict:?}");
        }
    }
}

/// The processes of this user that wait as interpreters in rooms of this process.
fn residents() -> Vec<i32> {
    let parent = |pid: i32| -> Option<i32> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        status.rsplit(") ").next()?.split(' ').nth(1)?.parse().ok()
    };
    let ours = i32::try_from(std::process::id()).unwrap();
    let pids = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|pid| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        // Between this process and the interpreter are the two halves of the shim.
        command.starts_with(b"python3\0-s\0-B\0-c\0")
            && parent(*pid).and_then(parent).and_then(parent) == Some(ours)
    })
    .collect()
}

#[test]
fn an_interpreter_that_has_changed_serves_nobody() {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let both = both();
    assert_eq!(both.verdict(&both.warm, GOLDEN).reward, Some(1.0));
    let waiting = residents();
    assert!(!waiting.is_empty());
    let no_files = Rlimit { current: Some(0), maximum: Some(0) };
    for pid in waiting.iter().filter_map(|pid| Pid::from_raw(*pid)) {
        prlimit(Some(pid), Resource::Fsize, no_files).unwrap();
    }
    for _ in 0..3 {
        let verdict = both.verdict(&both.warm, GOLDEN);
        assert_eq!((verdict.outcome, verdict.reward), (Outcome::Scored, Some(1.0)), "{verdict:?}");
    }
    assert!(residents().iter().all(|pid| !waiting.contains(pid)), "it was retired");
}

#[test]
fn a_verification_that_starts_a_process_gets_a_room_of_its_own() {
    let both = both();
    let quiet = "open('/logs/verifier/reward.txt', 'w').write('0.5')\n";
    for (start, retires) in [
        ("import threading; t = threading.Thread(target=print); t.start(); t.join()", false),
        ("import subprocess; subprocess.run(['true'])", true),
        ("import os; os.fork() or os._exit(0)", true),
        ("import os; os.posix_spawn('/bin/true', ['true'], {})", true),
    ] {
        both.write(quiet);
        assert_eq!(both.verdict(&both.warm, "{}").reward, Some(0.5));
        let before = residents();
        both.write(&format!("{start}\n{quiet}"));
        let verdict = both.verdict(&both.warm, "{}");
        assert_eq!((verdict.outcome, verdict.reward), (Outcome::Scored, Some(0.5)), "{start}: {verdict:?}");
        let kept = residents().iter().any(|pid| before.contains(pid));
        assert_eq!(kept, !retires, "{start}");
    }
}
