//! The result of a tool call, for the model and for the trajectory.

use std::time::Duration;

use aec_base::digest::Digest;
use aec_judge::settle::order::Submitted;
use aec_model::message::Part;

use crate::trajectory::ToolOutcome;

#[derive(Debug, Default)]
pub struct Ran {
    /// Standard output as the model sees it.
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) exit_code: Option<i32>,
    /// After how many seconds it was stopped.
    pub(crate) timed_out: Option<u64>,
    pub(crate) duration: Duration,
    /// Whether a program ran, which has two streams and an exit code.
    pub(crate) is_program: bool,
    pub(crate) is_error: bool,
    pub(crate) images: Vec<Part>,
    /// The paths of the images.
    pub(crate) media: Vec<String>,
    /// The answer that it submitted.
    pub submitted: Option<Submitted>,
}

impl Ran {
    /// A successful result with a text.
    pub(crate) fn said(text: String) -> Self {
        Self { stdout: text, exit_code: Some(0), ..Self::default() }
    }

    /// A call that was not executed.
    pub fn refused(complaint: String) -> Self {
        Self { stderr: complaint, exit_code: Some(1), is_error: true, ..Self::default() }
    }

    pub(crate) fn submission(answer: Submitted) -> Self {
        Self { submitted: Some(answer), ..Self::said("the answer is handed in".to_owned()) }
    }

    /// The text for the model.
    pub fn text(&self) -> String {
        if !self.is_program {
            let text = if self.is_error { format!("error: {}", self.stderr) } else { self.stdout.clone() };
            return if text.trim().is_empty() { "(no output)".to_owned() } else { text };
        }
        let mut text = if self.stdout.trim().is_empty() { String::new() } else { self.stdout.clone() };
        if !self.stderr.trim().is_empty() {
            text.push_str(&format!("\nSTDERR: {}", self.stderr));
        }
        if let Some(code) = self.exit_code.filter(|code| *code != 0) {
            text.push_str(&format!("\n[exit code: {code}]"));
        }
        if let Some(seconds) = self.timed_out {
            text.push_str(&format!("\n[timed out after {seconds} s]"));
        }
        if text.trim().is_empty() { "(no output)".to_owned() } else { text }
    }

    /// The part of the next message that answers the call.
    pub fn part(&mut self, call_id: &str) -> Part {
        let mut parts = vec![Part::text(self.text())];
        parts.append(&mut self.images);
        Part::ToolResult { call_id: call_id.to_owned(), parts, is_error: self.is_error }
    }

    /// The result for the trajectory.
    pub(crate) fn outcome(&self, snapshot: Option<Digest>) -> ToolOutcome {
        let mut stderr = self.stderr.clone();
        if let Some(seconds) = self.timed_out {
            stderr.push_str(&format!("\n[timed out after {seconds} s]"));
        }
        ToolOutcome {
            stdout: self.stdout.clone(),
            stderr,
            exit_code: self.exit_code,
            duration: self.duration,
            media: self.media.clone(),
            snapshot,
            told: self.text(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_told_in_the_documented_order() {
        let mut ran = Ran { is_program: true, exit_code: Some(0), ..Ran::default() };
        assert_eq!(ran.text(), "(no output)");
        ran.stdout = "1\n".into();
        assert_eq!(ran.text(), "1\n");
        ran.stderr = "oops".into();
        ran.exit_code = Some(2);
        assert_eq!(ran.text(), "1\n\nSTDERR: oops\n[exit code: 2]");
        let slow = Ran { is_program: true, stdout: "a".into(), timed_out: Some(3), ..Ran::default() };
        assert_eq!(slow.text(), "a\n[timed out after 3 s]");
        assert_eq!(Ran::refused("no".into()).text(), "error: no");
        assert_eq!(Ran::said(String::new()).text(), "(no output)");
    }
}
