//! `oracle`: runs the task's reference solution. Its reward shows that the task can be solved.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use aec_base::digest::Digest;
use aec_container::Purpose;
use aec_judge::judge::Judge;
use aec_model::message::ToolCall;
use aec_sandbox::{ExecSpec, Exit, Kind, Limits, WalkLimits};
use aec_task::task::Task;
use serde_json::json;

use super::tools::{Ran, kept, show};
use super::{End, Limit, Rollout, TrialContext};
use crate::plan::Conditions;
use crate::room::{ExtraFile, MAX_PIDS, RoomOpener, lifetime};
use crate::task::PreparedTask;
use crate::workspace::{WORKSPACE, blocking};

/// The solution's directory in the sandbox.
const SOLUTION: &str = "/solution";
/// Most files of a solution, and their bytes.
const MOST_FILES: usize = 4096;
const MOST_BYTES: u64 = 64 * 1024 * 1024;
/// How deep a solution's directories may be.
const DEEPEST: usize = 16;

/// Possible programs of the solution, and what runs them.
const ENTRIES: [(&str, &str); 2] = [("solve.sh", "bash"), ("solve.py", "python3")];

pub async fn run(context: &mut TrialContext) -> Rollout {
    let instruction = context.task.instruction.clone();
    context.begin(None, &instruction);
    Rollout::new(match solve(context).await {
        Ok(()) => End::Done,
        Err(end) => end,
    })
}

/// Puts the solution into the sandbox and runs it. An error is the end of the work.
pub(super) async fn solve(context: &mut TrialContext) -> Result<(), End> {
    let directory = context.task.task.path.join("solution");
    let files = blocking(move || read(&directory)).await?;
    let files = files.map_err(|error| End::Task(format!("the solution cannot be read: {error}")))?;
    let entry = ENTRIES.iter().find(|(name, _)| files.iter().any(|file| file.place == *name));
    let Some((name, program)) = entry else {
        return Err(End::Task("the task has no solution: neither solve.sh nor solve.py".to_owned()));
    };
    context.opener.extra.extend(files);
    let workspace = context.workspace().await?;
    let script = format!("{SOLUTION}/{name}");
    let call = ToolCall {
        id: "solution".to_owned(),
        name: "bash".to_owned(),
        arguments: json!({ "command": format!("{program} {script}") }).to_string(),
    };
    context.trajectory.next_step();
    context.trajectory.tool_call(&call);
    let mut command = workspace.command([*program, script.as_str()]);
    command.deadline = context.time_left();
    (command.stdout, command.stderr) = (kept(), kept());
    let allowed = command.deadline;
    let result = workspace.exec(command).await?;
    let budget = context.agent.parameters.tool_output as usize;
    let shown = show(&workspace, 1, &result.stdout, &result.stderr, budget).await;
    let ran = told(result.exit, shown.stdout, shown.stderr, result.duration, allowed);
    context.trajectory.tool_result(&call, &ran.outcome(None));
    match result.exit {
        Exit::Code(0) => Ok(()),
        Exit::Deadline => Err(End::Limit(Limit::Time)),
        Exit::Code(code) => Err(failed(&format!("exit code {code}"), &ran.stderr)),
        Exit::Signal(signal) => Err(failed(&format!("signal {signal}"), &ran.stderr)),
    }
}

/// The files that a task's reference solution adds to the workspace, without those given to it.
pub fn reference_files(task: &Task, judge: &Judge) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let prepared = PreparedTask::read(task.clone(), Digest::of(b""), &Conditions::default())
        .map_err(|problem| problem.to_string())?;
    let extra = read(&task.path.join("solution")).map_err(|error| format!("it cannot be read: {error}"))?;
    let entry = ENTRIES.iter().find(|(name, _)| extra.iter().any(|file| file.place == *name));
    let (name, program) = entry.ok_or("there is none: neither solve.sh nor solve.py")?;
    let environment = &task.environment;
    let time = Duration::try_from_secs_f64(task.agent.timeout_sec).unwrap_or(Duration::MAX);
    let purpose = Purpose { lifetime: lifetime(time), ..Purpose::default() };
    let opener = RoomOpener {
        isolation: judge.isolation,
        containers: judge.containers.clone().map(|containers| (containers, purpose)),
        python: judge.python.clone(),
        limits: Limits {
            cpus: environment.cpus,
            memory_mb: environment.memory_mb,
            storage_mb: environment.storage_mb,
            pids: MAX_PIDS,
        },
        extra,
        ourselves: false,
    };
    let mut room = opener.open_now(&prepared).map_err(|error| error.to_string())?;
    let mut command = ExecSpec::new([(*program).to_owned(), format!("{SOLUTION}/{name}")]);
    WORKSPACE.clone_into(&mut command.cwd);
    command.deadline = Duration::try_from_secs_f64(task.agent.timeout_sec).unwrap_or(Duration::from_mins(10));
    command.stderr = kept();
    let result = room.exec(&command, &mut |_, _| {}).map_err(|error| error.to_string())?;
    if result.exit != Exit::Code(0) {
        return Err(format!("it ended with {:?}: {}", result.exit, tail(&result.stderr.text())));
    }
    room.freeze().map_err(|error| error.to_string())?;
    let tree = room.directory(WORKSPACE).ok_or("the sandbox has lost its workspace")?;
    let mut files = BTreeMap::new();
    for entry in
        tree.list(WalkLimits { entries: MOST_FILES, depth: DEEPEST }).map_err(|error| error.to_string())?
    {
        let path = entry.path.to_string_lossy().into_owned();
        if entry.kind == Kind::File {
            let content = tree.read(&entry.path, MOST_BYTES).map_err(|error| format!("{path}: {error}"))?;
            if !prepared.files.iter().any(|given| given.place == path && *given.content == *content) {
                files.insert(path, content);
            }
        }
    }
    Ok(files)
}

/// The result of a program that this harness ran.
pub(super) fn told(exit: Exit, stdout: String, stderr: String, duration: Duration, allowed: Duration) -> Ran {
    let mut ran = Ran { stdout, stderr, duration, is_program: true, ..Ran::default() };
    match exit {
        Exit::Code(code) => ran.exit_code = Some(code),
        // As shells report it.
        Exit::Signal(signal) => ran.exit_code = Some(128 + signal),
        Exit::Deadline => ran.timed_out = Some(allowed.as_secs().max(1)),
    }
    ran.is_error = ran.exit_code != Some(0);
    ran
}

fn failed(how: &str, stderr: &str) -> End {
    End::Agent(format!("the reference solution ended with {how}: {}", tail(stderr)))
}

/// The last lines of a text, short enough for a message.
pub(super) fn tail(text: &str) -> String {
    const LONGEST: usize = 400;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().rev().nth(LONGEST) {
        Some((start, _)) => format!("…{}", &line[start..]),
        None => line,
    }
}

/// The files of a solution; none when there is no directory.
fn read(directory: &Path) -> io::Result<Vec<ExtraFile>> {
    let mut files = Vec::new();
    let mut left = MOST_BYTES;
    match directory.symlink_metadata() {
        Ok(found) if found.is_dir() => walk(directory, "", 0, &mut left, &mut files)?,
        Ok(_) => return Err(io::Error::other("solution is not a directory")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    files.sort_by(|a, b| a.place.cmp(&b.place));
    Ok(files)
}

fn walk(
    directory: &Path,
    above: &str,
    depth: usize,
    left: &mut u64,
    files: &mut Vec<ExtraFile>,
) -> io::Result<()> {
    for entry in fs_err::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_str().ok_or_else(|| io::Error::other("a file name is not text"))?;
        let place = format!("{above}{name}");
        let found = entry.metadata()?;
        if found.is_dir() && depth < DEEPEST {
            walk(&entry.path(), &format!("{place}/"), depth + 1, left, files)?;
        } else if found.is_file() {
            *left = left
                .checked_sub(found.len())
                .filter(|_| files.len() < MOST_FILES)
                .ok_or_else(|| io::Error::other("it is too large"))?;
            files.push(ExtraFile {
                directory: SOLUTION,
                place,
                content: fs_err::read(entry.path())?.into(),
                executable: found.permissions().mode() & 0o111 != 0,
            });
        } else {
            return Err(io::Error::other(format!("{place} is neither a file nor a directory to be read")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solutions_are_read_whole_and_without_links() {
        let directory = tempfile::tempdir().unwrap();
        let solution = directory.path().join("solution");
        assert!(read(&solution).unwrap().is_empty());
        fs_err::create_dir_all(solution.join("data")).unwrap();
        fs_err::write(solution.join("solve.sh"), "exit 0").unwrap();
        fs_err::write(solution.join("data/a.csv"), "1").unwrap();
        let places: Vec<String> = read(&solution).unwrap().into_iter().map(|file| file.place).collect();
        assert_eq!(places, ["data/a.csv", "solve.sh"]);
        std::os::unix::fs::symlink("/etc/passwd", solution.join("link")).unwrap();
        assert!(read(&solution).is_err());
    }

    #[test]
    fn the_tail_of_a_text_is_short() {
        assert_eq!(tail("a\n b"), "a b");
        let long = tail(&"ü".repeat(1000));
        assert_eq!(long.chars().count(), 402);
    }
}
