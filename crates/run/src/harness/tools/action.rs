//! The checked action of a tool call, and its execution in a workspace.

use aec_judge::settle::order::Submitted;
use aec_sandbox::SandboxError;

use super::arguments::Given;
use super::{Allowed, Declared, LARGEST_FILE, Ran, Trouble, files, shell};
use crate::workspace::Workspace;

/// The action of a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    Run {
        line: String,
    },
    Program {
        tool: Declared,
        arguments: String,
    },
    Read {
        path: String,
        offset: Option<usize>,
        limit: Option<usize>,
    },
    Write {
        path: String,
        content: String,
    },
    Edit {
        path: String,
        old: String,
        new: String,
    },
    List {
        path: String,
    },
    /// An answer, also written to a file if it names one. Freezing the work puts it into its place.
    Submit {
        content: String,
        path: Option<String>,
    },
    /// A file that is the answer.
    SubmitFile {
        path: String,
    },
}

impl Action {
    /// The action for the arguments of a built-in tool.
    pub(super) fn of(name: &str, mut given: Given) -> Result<Self, String> {
        Ok(match name {
            "bash" => Self::Run { line: given.text("command")? },
            "read_file" => Self::Read {
                path: given.text("path")?,
                offset: given.optional_count("offset")?,
                limit: given.optional_count("limit")?,
            },
            "write_file" => Self::Write { path: given.text("path")?, content: given.text("content")? },
            "edit_file" => {
                Self::Edit { path: given.text("path")?, old: given.text("old")?, new: given.text("new")? }
            }
            "list_files" => Self::List { path: given.optional_text("path")?.unwrap_or_default() },
            _ => match (given.optional_text("content")?, given.optional_text("path")?) {
                (Some(content), _) if content.len() > LARGEST_FILE => {
                    return Err(format!("cannot hand in the answer: it is larger than {LARGEST_FILE} bytes"));
                }
                (Some(content), path) => Self::Submit { content, path },
                (None, Some(path)) => Self::SubmitFile { path },
                (None, None) => return Err(given.complain("`content` and `path` are both missing")),
            },
        })
    }

    /// Executes the action. Its failures are results too; only a failed sandbox is an error. `number` distinguishes the
    /// files of long outputs.
    pub async fn carry_out(
        self,
        workspace: &Workspace,
        number: u32,
        allowed: &Allowed,
    ) -> Result<Ran, SandboxError> {
        let done = match self {
            Self::Run { line } => shell::run(workspace, number, line, false, allowed).await,
            Self::Program { tool, arguments } => {
                let line = tool.line(workspace.root(), &arguments);
                shell::run(workspace, number, line, tool.returns_image, allowed).await
            }
            Self::Read { path, offset, limit } => {
                files::read(workspace, &path, offset, limit, allowed.output).await
            }
            Self::Write { path, content } => files::write(workspace, &path, content).await,
            Self::Edit { path, old, new } => files::edit(workspace, &path, &old, &new).await,
            Self::List { path } => files::list(workspace, &path, allowed.output).await,
            Self::Submit { content, path } => {
                let stored = match path {
                    Some(path) => files::hand_in(workspace, &path, content.clone()).await,
                    None => Ok(()),
                };
                stored.map(|()| Ran::submission(Submitted::Content(content.into_bytes())))
            }
            Self::SubmitFile { path } => {
                let found = files::find(workspace, &path).await;
                found.map(|place| Ran::submission(Submitted::File(place)))
            }
        };
        match done {
            Ok(ran) => Ok(ran),
            Err(Trouble::Told(complaint)) => Ok(Ran::refused(complaint)),
            Err(Trouble::Room(error)) => Err(error),
        }
    }
}
