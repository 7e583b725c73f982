//! Quoting: words for a shell, values for `#SBATCH` lines, names of log files. Paths may hold anything.

/// A word that a POSIX shell takes literally.
pub fn word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A value on an `#SBATCH` line, which cannot express a line break.
pub fn directive(value: &str) -> Option<String> {
    if value.chars().any(char::is_control) {
        return None;
    }
    Some(format!("\"{}\"", value.replace('\\', r"\\").replace('"', "\\\"")))
}

/// A directory as the beginning of a file name in which Slurm fills in `%a`. `None` if it contains a backslash, which
/// would switch that off.
pub fn log_directory(path: &str) -> Option<String> {
    if path.contains('\\') || path.chars().any(char::is_control) {
        return None;
    }
    Some(path.replace('%', "%%"))
}

/// An argument in a Kubernetes manifest, escaped because Kubernetes expands `$(NAME)`.
pub fn kubernetes_argument(text: &str) -> String {
    text.replace("$(", "$$(")
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ordinary_words_stay_readable() {
        assert_eq!(word("/srv/runs/exp-1"), "/srv/runs/exp-1");
        assert_eq!(word(""), "''");
        assert_eq!(word("a b"), "'a b'");
        assert_eq!(word("it's"), r"'it'\''s'");
        assert_eq!(directive(r#"a "b" \c"#).as_deref(), Some(r#""a \"b\" \\c""#));
        assert_eq!(directive("a\nb"), None);
        assert_eq!(log_directory("/a %j/b").as_deref(), Some("/a %%j/b"));
        assert_eq!(log_directory(r"/a\b"), None);
        assert_eq!(kubernetes_argument("$(HOME) $5"), "$$(HOME) $5");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_shell_reads_back_what_was_written(text in "[^\0]{0,40}") {
            let script = format!("printf %s {}", word(&text));
            let output = Command::new("sh").args(["-c", &script]).output().unwrap();
            prop_assert_eq!(String::from_utf8(output.stdout).unwrap(), text);
        }
    }
}
