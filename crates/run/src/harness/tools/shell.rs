//! Runs a line in the sandbox's shell.

use aec_sandbox::Exit;

use super::result::Ran;
use super::{Allowed, LONGEST_COMMAND, Trouble, images, output};
use crate::workspace::Workspace;

/// Runs a line; returns its result, or why it cannot be run.
pub(super) async fn run(
    workspace: &Workspace,
    number: u32,
    line: String,
    returns_image: bool,
    allowed: &Allowed,
) -> Result<Ran, Trouble> {
    if line.trim().is_empty() {
        return Err("`command` is empty".to_owned().into());
    }
    if line.len() > LONGEST_COMMAND || line.contains('\0') {
        let what = format!(
            "`command` must have at most {LONGEST_COMMAND} bytes and no NUL; write a file and run it"
        );
        return Err(what.into());
    }
    let mut command = workspace.command(["bash".to_owned(), "-c".to_owned(), line]);
    command.deadline = allowed.time;
    (command.stdout, command.stderr) = (output::kept(), output::kept());
    let result = workspace.exec(command).await?;
    let shown = output::show(workspace, number, &result.stdout, &result.stderr, allowed.output).await;
    let mut ran = Ran {
        stdout: shown.stdout,
        stderr: shown.stderr,
        duration: result.duration,
        is_program: true,
        ..Ran::default()
    };
    match result.exit {
        Exit::Code(code) => ran.exit_code = Some(code),
        // As shells report it.
        Exit::Signal(signal) => ran.exit_code = Some(128 + signal),
        Exit::Deadline => ran.timed_out = Some(allowed.time.as_secs().max(1)),
    }
    ran.is_error = ran.exit_code != Some(0);
    if returns_image {
        let found = images::named_in(workspace, &ran.stdout).await;
        (ran.images, ran.media) = (found.parts, found.paths);
        for remark in found.remarks {
            ran.stdout.push_str(&format!("\n{remark}"));
        }
    }
    Ok(ran)
}
