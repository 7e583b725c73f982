//! The difference of a candidate to its parent, line by line, folded away until the user opens it.

use crate::html::Html;
use crate::words;

/// Most lines of one candidate's changes.
const LINES: usize = 400;

/// Most characters of one candidate's changes.
const LETTERS: usize = 20_000;

/// The kind of a line of `diff -u`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    /// The name of a file, or something about it.
    File,
    /// The position of a change.
    Where,
    Added,
    Removed,
    Same,
}

/// Adds changes; returns the number of their characters.
pub(super) fn show(html: &mut Html, diff: &str, against: &str) -> usize {
    let lines = lines(diff);
    let count = |kind: Line| lines.iter().filter(|(line, _)| *line == kind).count();
    html.raw("<details class=\"changes\"><summary>Changes against ").text(against).raw(": ");
    if lines.is_empty() {
        html.raw("none</summary></details>\n");
        return 0;
    }
    html.text(&format!("{} added, {} removed", plural(count(Line::Added)), plural(count(Line::Removed))));
    html.raw("</summary><pre class=\"lines\">");
    let (mut taken, mut shown) = (0, 0);
    for (kind, text) in &lines {
        let letters = text.chars().count();
        if shown == LINES || taken + letters > LETTERS {
            break;
        }
        taken += letters;
        shown += 1;
        // Signs tell the same as the colours.
        let (open, close) = match kind {
            Line::File => ("<b>", "</b>"),
            Line::Where => ("<span class=\"where\">", "</span>"),
            Line::Added => ("<ins>+ ", "</ins>"),
            Line::Removed => ("<del>− ", "</del>"),
            Line::Same => ("<span>  ", "</span>"),
        };
        html.raw(open).text(text).raw(close);
    }
    html.raw("</pre>");
    if shown < lines.len() {
        html.hint(&format!("and {} more; `aec-bench evolve diff` shows all", plural(lines.len() - shown)));
    }
    html.raw("</details>\n");
    taken
}

fn plural(lines: usize) -> String {
    format!("{} {}", words::count(lines), if lines == 1 { "line" } else { "lines" })
}

/// The lines of `diff -u` without their signs. The lengths in a change's head distinguish its lines from file names: a
/// removed line may look like one.
fn lines(diff: &str) -> Vec<(Line, &str)> {
    let (mut old, mut new) = (0_usize, 0_usize);
    let mut lines = Vec::new();
    for line in diff.lines() {
        let inside = old > 0 || new > 0;
        let kind = match line.as_bytes().first() {
            Some(b'+') if inside => Line::Added,
            Some(b'-') if inside => Line::Removed,
            Some(b' ') | None if inside => Line::Same,
            _ if line.starts_with("@@") => Line::Where,
            _ => Line::File,
        };
        match kind {
            Line::Where => (old, new) = lengths(line).unwrap_or_default(),
            Line::Added => new = new.saturating_sub(1),
            Line::Removed => old = old.saturating_sub(1),
            Line::Same => (old, new) = (old.saturating_sub(1), new.saturating_sub(1)),
            Line::File => {}
        }
        let text = match kind {
            Line::File | Line::Where => line,
            // A sign is one byte.
            _ => line.get(1..).unwrap_or_default(),
        };
        lines.push((kind, text));
    }
    lines
}

/// The numbers of old and new lines of a change: `@@ -1,3 +1,4 @@`.
fn lengths(line: &str) -> Option<(usize, usize)> {
    let mut parts = line.split(' ').skip(1);
    let mut next = |sign: char| {
        let part = parts.next()?.strip_prefix(sign)?;
        part.split_once(',').map_or(Some(1), |(_, length)| length.parse().ok())
    };
    Some((next('-')?, next('+')?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_apart_by_what_a_change_announces() {
        use Line::{Added, File, Removed, Same, Where};
        let diff = "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n same\n--- not a file\n+++ neither\n \n--- /dev/null\n+++ b/y\n@@ -0,0 +1 @@\n+one\n\\ No newline at end of file\n";
        let kinds: Vec<Line> = lines(diff).iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, [File, File, Where, Same, Removed, Added, Same, File, File, Where, Added, File]);
        assert_eq!(lines(diff)[4].1, "-- not a file");
    }

    #[test]
    fn nonsense_is_shown_as_it_is() {
        for diff in
            ["", "x", "@@", "@@ -9999999999999999999999 +1 @@\n+a", "@@ -1,1 +1,1 @@\nébc\n", "\n\n+\n"]
        {
            let mut html = Html::default();
            show(&mut html, diff, "c");
            assert!(html.into_string().ends_with("</details>\n"), "{diff}");
        }
    }

    #[test]
    fn long_changes_are_cut_and_say_so() {
        let mut html = Html::default();
        let diff: String = std::iter::once("@@ -0,0 +1,1000 @@\n".to_owned())
            .chain((0..1000).map(|n| format!("+{n}\n")))
            .collect();
        show(&mut html, &diff, "c");
        let text = html.into_string();
        assert!(
            text.contains("1,000 lines added, 0 lines removed") && text.contains("and 601 lines more"),
            "{text}"
        );
        let mut html = Html::default();
        let taken = show(&mut html, &format!("@@ -0,0 +1,2 @@\n+a\n+{}\n", "é".repeat(LETTERS)), "c");
        assert!(taken < LETTERS && html.into_string().contains("and 1 line more"));
    }
}
