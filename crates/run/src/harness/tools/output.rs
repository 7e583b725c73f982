//! The part of a tool's output that a model sees: beginning and end, cut between characters, with a line that says what
//! is missing and where the whole output is.

use std::path::Path;

use aec_sandbox::{Captured, OutputLimits};

use crate::workspace::Workspace;

/// Bytes of each half of a stream that are kept for the file of the whole output.
pub(super) const KEPT: usize = 5 * 1024 * 1024;

/// The sandbox's directory for files of whole outputs.
const LOGS: &str = "/logs";

/// How much of a command's output this process keeps.
pub(crate) fn kept() -> OutputLimits {
    OutputLimits { head: KEPT, tail: KEPT, spill: None }
}

/// Both streams of a command as the model sees them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Cuts a command's output to `budget` bytes. A longer output is written to a file in the sandbox, if possible.
pub(crate) async fn show(
    workspace: &Workspace,
    number: u32,
    stdout: &Captured,
    stderr: &Captured,
    budget: usize,
) -> Shown {
    let (out, err) = (size(stdout), size(stderr));
    let limit = budget as u64;
    if out.saturating_add(err) <= limit {
        return Shown { stdout: cut(stdout, budget, None), stderr: cut(stderr, budget, None) };
    }
    // Error output is usually short and important; it gets what it needs, at least up to a quarter.
    let for_err = err.min((limit / 4).max(limit.saturating_sub(out)));
    let for_err = usize::try_from(for_err).unwrap_or(budget);
    let place = spill(workspace, number, stdout, stderr).await;
    Shown {
        stdout: cut(stdout, budget - for_err, place.as_deref()),
        stderr: cut(stderr, for_err, place.as_deref()),
    }
}

/// A text of the file tools, cut to `budget` bytes.
pub(crate) fn cut_text(text: &str, budget: usize) -> String {
    let captured = Captured { head: text.as_bytes().to_vec(), ..Captured::default() };
    cut(&captured, budget, None)
}

fn size(captured: &Captured) -> u64 {
    (captured.head.len() + captured.tail.len()) as u64 + captured.omitted
}

fn cut(captured: &Captured, budget: usize, place: Option<&str>) -> String {
    if captured.omitted == 0 && captured.head.len() + captured.tail.len() <= budget {
        let mut whole = captured.head.clone();
        whole.extend_from_slice(&captured.tail);
        return String::from_utf8_lossy(&whole).into_owned();
    }
    let joined;
    let (front, back) = if captured.omitted == 0 {
        joined = [captured.head.as_slice(), captured.tail.as_slice()].concat();
        (joined.as_slice(), joined.as_slice())
    } else {
        (captured.head.as_slice(), captured.tail.as_slice())
    };
    let front = &front[..before(front, budget / 2)];
    let back = &back[after(back, back.len().saturating_sub(budget - budget / 2))..];
    let left_out = size(captured) - (front.len() + back.len()) as u64;
    let whole = match place {
        Some(place) if captured.omitted > 0 => format!("; its first and last {KEPT} bytes are in {place}"),
        Some(place) => format!("; the whole output is in {place}"),
        None => String::new(),
    };
    format!(
        "{}\n[… {left_out} bytes left out{whole} …]\n{}",
        String::from_utf8_lossy(front),
        String::from_utf8_lossy(back)
    )
}

fn is_inside_character(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

/// The end of the last whole character before `at`. Bytes that are not UTF-8 are cut anywhere.
fn before(bytes: &[u8], at: usize) -> usize {
    let at = at.min(bytes.len());
    let starts = (at.saturating_sub(3)..=at).rev();
    starts
        .into_iter()
        .find(|&index| bytes.get(index).is_none_or(|byte| !is_inside_character(*byte)))
        .unwrap_or(at)
}

/// The start of the first whole character from `at` on.
fn after(bytes: &[u8], at: usize) -> usize {
    let last = (at + 3).min(bytes.len());
    (at..=last).find(|&index| bytes.get(index).is_none_or(|byte| !is_inside_character(*byte))).unwrap_or(at)
}

/// Writes the kept output to a file in the sandbox; returns its path if that worked. On a full disk the model still
/// gets the cut output.
async fn spill(workspace: &Workspace, number: u32, stdout: &Captured, stderr: &Captured) -> Option<String> {
    let mut all = Vec::new();
    for (index, captured) in [stdout, stderr].into_iter().enumerate() {
        if index == 1 && size(captured) > 0 {
            all.extend_from_slice(b"\nSTDERR: ");
        }
        all.extend_from_slice(&captured.head);
        if captured.omitted > 0 {
            all.extend_from_slice(format!("\n[… {} bytes left out …]\n", captured.omitted).as_bytes());
        }
        all.extend_from_slice(&captured.tail);
    }
    let name = format!("tool-output/{number}.txt");
    let place = format!("{LOGS}/{name}");
    let written = workspace.with_place(LOGS, move |tree| tree.write(Path::new(&name), &all, false)).await;
    written.is_ok().then_some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(text: &str) -> Captured {
        Captured { head: text.as_bytes().to_vec(), ..Captured::default() }
    }

    #[test]
    fn head_and_tail_are_shown_and_the_gap_is_counted() {
        assert_eq!(cut(&captured("abcdef"), 6, None), "abcdef");
        assert_eq!(cut(&captured("abcdefgh"), 6, None), "abc\n[… 2 bytes left out …]\nfgh");
        let gap = Captured { head: b"abcd".to_vec(), tail: b"wxyz".to_vec(), omitted: 10 };
        assert_eq!(cut(&gap, 100, None), "abcd\n[… 10 bytes left out …]\nwxyz");
        let shown = cut(&gap, 4, Some("/logs/x"));
        assert!(shown.starts_with("ab\n[… 14 bytes left out; its first and last"), "{shown}");
        assert!(shown.ends_with("in /logs/x …]\nyz"), "{shown}");
    }

    #[test]
    fn characters_are_never_cut() {
        let text = "å→😀ß".repeat(20);
        for budget in 0..text.len() {
            let shown = cut_text(&text, budget);
            assert!(!shown.contains('\u{fffd}'), "{budget}: {shown}");
            let kept: usize = shown.split("\n[…").next().unwrap().len();
            assert!(kept <= budget, "{budget}");
        }
    }

    #[test]
    fn what_is_not_text_is_shown_as_far_as_it_is() {
        let bytes = Captured { head: vec![0x80; 40], ..Captured::default() };
        assert!(cut(&bytes, 10, None).contains("30 bytes left out"));
    }
}
