//! The difference of two candidates in readable form.

use std::collections::BTreeSet;

use similar::TextDiff;

use super::candidate::{Candidate, Files};

/// Context lines around a change.
const AROUND: usize = 3;

/// The differences of two candidates, file by file, in the format of `diff -u`; empty if there are none.
pub fn diff(before: &Candidate, after: &Candidate) -> String {
    let paths: BTreeSet<&String> = before.files.keys().chain(after.files.keys()).collect();
    let mut text = String::new();
    for path in paths {
        let (old, new) = (content(&before.files, path), content(&after.files, path));
        if old == new {
            continue;
        }
        let name =
            |there: bool, side: &str| if there { format!("{side}/{path}") } else { "/dev/null".to_owned() };
        let from = name(before.files.contains_key(path), "a");
        let to = name(after.files.contains_key(path), "b");
        match (old, new) {
            (Some(old), Some(new)) => {
                let difference = TextDiff::from_lines(old, new);
                text.push_str(
                    &difference.unified_diff().context_radius(AROUND).header(&from, &to).to_string(),
                );
            }
            _ => text.push_str(&format!("--- {from}\n+++ {to}\nfiles that are not text differ\n")),
        }
    }
    text
}

/// A file as text; empty if it does not exist.
fn content<'a>(files: &'a Files, path: &str) -> Option<&'a str> {
    files.get(path).map_or(Some(""), |bytes| std::str::from_utf8(bytes).ok())
}

#[cfg(test)]
mod tests {
    use super::super::candidate::tests::candidate;
    use super::*;

    #[test]
    fn changes_are_shown_file_by_file() {
        let before = candidate("One.\nTwo.\n", &[("units", "Check units.")]);
        let after = candidate("One.\nThree.\n", &[("signs", "Check signs.")]);
        let text = diff(&before, &after);
        for part in [
            "--- a/prompts/system.md\n+++ b/prompts/system.md\n",
            "-Two.\n+Three.\n",
            "--- /dev/null\n+++ b/skills/signs/SKILL.md\n",
            "--- a/skills/units/SKILL.md\n+++ /dev/null\n",
            "+Check signs.\n",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert_eq!(diff(&before, &before), "");
        let mut odd = before.clone();
        odd.files.insert("blob".to_owned(), vec![0xff]);
        assert!(diff(&before, &odd).contains("not text"));
    }
}
