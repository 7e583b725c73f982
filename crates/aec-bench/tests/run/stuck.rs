//! Nothing that an agent leaves in its room makes a trial wait for ever.

use aec_xtest::wait::until_some;

use crate::run::world::Project;

/// Calls of every tool on pipes, sockets, devices and links to processes, and an output whose place is taken by a pipe.
/// `exec 3<>` keeps a pipe open for both sides, so that opening it succeeds.
const SPECIAL: &str = r#"
replies:
- tool_calls:
  - {name: bash, arguments: {command: "mkfifo pipe held output.json; (exec 3<>held; sleep 100) & python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('socket')\"; ln -s /dev/zero zero; ln -s /proc/self/fd/0 input; ln -s /proc/self/root root; mkdir -p /logs/tool-output; mkfifo /logs/tool-output/16.txt; echo made"}}
  - {name: write_file, arguments: {path: pipe, content: x}}
  - {name: write_file, arguments: {path: held, content: x}}
  - {name: read_file, arguments: {path: pipe}}
  - {name: read_file, arguments: {path: held}}
  - {name: edit_file, arguments: {path: held, old: a, new: b}}
  - {name: write_file, arguments: {path: socket, content: x}}
  - {name: read_file, arguments: {path: socket}}
  - {name: read_file, arguments: {path: zero}}
  - {name: write_file, arguments: {path: zero, content: x}}
  - {name: read_file, arguments: {path: input}}
  - {name: read_file, arguments: {path: root/etc/passwd}}
  - {name: write_file, arguments: {path: pipe/below, content: x}}
  - {name: list_files, arguments: {}}
  - {name: submit_answer, arguments: {path: pipe}}
  - {name: bash, arguments: {command: "head -c 300000 /dev/zero | tr '\\0' x"}}
- text: "done"
"#;

#[test]
fn pipes_sockets_and_devices_hold_up_no_tool() {
    let project = Project::with_tasks(1);
    let model = project.script("special", SPECIAL);
    let line = format!("run civil --model {model} --harness tool_loop --parameter max_turns=4 -e x");
    let data = project.data(&line);
    assert_eq!(data["recorded"], 1, "{data}");
    let record = project.record("x");
    let trajectory = project.job_file(&record, "trajectory.jsonl");
    let refused = trajectory.matches("not a regular file").count();
    assert!(refused >= 6, "{refused}: {trajectory}");
    assert!(!trajectory.contains("root:x:0"), "{trajectory}");
}

/// Before, the trial waited for a room that no longer answers: 617 seconds with a limit of 600, and two Ctrl-C did not end
/// it.
#[test]
fn a_room_that_no_longer_answers_ends_with_its_time() {
    let project = Project::with_tasks(1);
    let replies =
        "replies:\n- tool_calls:\n  - {name: bash, arguments: {command: 'sleep 4711'}}\n- text: x\n";
    let model = project.script("slow", replies);
    let running = project.start(&format!("run civil --model {model} --harness tool_loop --timeout 2 -e x"));
    let keeper = until_some("the command runs", || keeper_of(running.id()));
    let keeper = rustix::process::Pid::from_raw(keeper).unwrap();
    rustix::process::kill_process(keeper, rustix::process::Signal::STOP).unwrap();
    let (code, stdout, stderr) = running.end();
    let output = format!("{stdout}\n{stderr}");
    // It cannot end by itself: nobody waits for it any more.
    rustix::process::kill_process(keeper, rustix::process::Signal::KILL).ok();
    assert!(matches!(code, Some(0 | 1)), "{code:?}: {output}");
    let record = project.record("x");
    assert_eq!(record.outcome.name(), "scored", "what it left is judged: {output}");
    assert_eq!(record.fault.unwrap().kind.as_deref(), Some("timeout"), "{output}");
}

/// The first process of the room in which the command runs: the shim outside is a child of the program, this one is its
/// child.
fn keeper_of(program: u32) -> Option<i32> {
    fn any(pid: i32, children: &dyn Fn(i32) -> Vec<i32>, is_it: &dyn Fn(i32) -> bool) -> bool {
        is_it(pid) || children(pid).into_iter().any(|child| any(child, children, is_it))
    }
    let read = |path: String| std::fs::read_to_string(path).unwrap_or_default();
    let children = |pid: i32| -> Vec<i32> {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        let listed = tasks.map(|task| read(format!("{}/children", task.path().display())));
        listed
            .flat_map(|pids| pids.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<_>>())
            .collect()
    };
    let sleeps = |pid: i32| read(format!("/proc/{pid}/cmdline")).starts_with("sleep\x004711");
    let shims = children(i32::try_from(program).unwrap());
    shims.into_iter().flat_map(&children).find(|first| any(*first, &children, &sleeps))
}
