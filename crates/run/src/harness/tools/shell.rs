//! Running a line in the room's shell.

use std::time::Duration;

use aec_sandbox::Exit;

use super::result::Ran;
use super::{images, output};
use crate::harness::{End, TrialContext};
use crate::workspace::Workspace;

/// Longest line that the kernel takes as one argument, with some room.
const LONGEST: usize = 120_000;

/// Runs a line; its result, or why it cannot be run.
pub(crate) async fn run(
    context: &TrialContext,
    workspace: &Workspace,
    number: u32,
    line: String,
    returns_image: bool,
) -> Result<Result<Ran, String>, End> {
    if line.trim().is_empty() {
        return Ok(Err("`command` is empty".to_owned()));
    }
    if line.len() > LONGEST || line.contains('\0') {
        let what = format!("`command` must have at most {LONGEST} bytes and no NUL; write a file and run it");
        return Ok(Err(what));
    }
    let parameters = &context.agent.parameters;
    let mut command = workspace.command(["bash".to_owned(), "-c".to_owned(), line]);
    command.deadline = Duration::from_secs(parameters.command_timeout.into()).min(context.time_left());
    (command.stdout, command.stderr) = (output::kept(), output::kept());
    let allowed = command.deadline;
    let result = workspace.exec(command).await?;
    let budget = parameters.tool_output as usize;
    let shown = output::show(workspace, number, &result.stdout, &result.stderr, budget).await;
    let mut ran = Ran {
        stdout: shown.stdout,
        stderr: shown.stderr,
        duration: result.duration,
        is_program: true,
        ..Ran::default()
    };
    match result.exit {
        Exit::Code(code) => ran.exit_code = Some(code),
        // As shells say it.
        Exit::Signal(signal) => ran.exit_code = Some(128 + signal),
        Exit::Deadline => ran.timed_out = Some(allowed.as_secs().max(1)),
    }
    ran.is_error = ran.exit_code != Some(0);
    if returns_image {
        let found = images::named_in(workspace, &ran.stdout).await;
        (ran.images, ran.media) = (found.parts, found.paths);
        for remark in found.remarks {
            ran.stdout.push_str(&format!("\n{remark}"));
        }
    }
    Ok(Ok(ran))
}
