//! Relative file paths that are valid and distinct on every machine.

use std::collections::HashMap;

use unicode_normalization::UnicodeNormalization as _;

use crate::text::printable;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    #[error("it is absolute or has an empty part")]
    Empty,
    #[error("it has `.` or `..` as a part")]
    Dots,
    #[error("it has a backslash")]
    Backslash,
    #[error("it has the control character U+{:04X}", u32::from(*.0))]
    Control(char),
    #[error("it or a part of it is too long")]
    TooLong,
    #[error("it is there twice")]
    Duplicate,
    #[error("it is a file and a directory at once")]
    FileAndDirectory,
    #[error("it differs from `{}` only in case or Unicode form", printable(.0))]
    Collision(String),
}

const MAX_PART: usize = 255;
const MAX_PATH: usize = 1024;

/// Checks the form of a path whose separators are slashes.
pub fn check(path: &str) -> Result<(), PathError> {
    if path.len() > MAX_PATH {
        return Err(PathError::TooLong);
    }
    if let Some(control) = path.chars().find(|c| c.is_control()) {
        return Err(PathError::Control(control));
    }
    if path.contains('\\') {
        return Err(PathError::Backslash);
    }
    for part in path.split('/') {
        match part {
            "" => return Err(PathError::Empty),
            "." | ".." => return Err(PathError::Dots),
            part if part.len() > MAX_PART => return Err(PathError::TooLong),
            _ => {}
        }
    }
    Ok(())
}

/// A set of files whose paths stay distinct on every file system, also on those that ignore case or Unicode form.
#[derive(Debug, Default)]
pub struct PathSet {
    /// Every file and directory, keyed by its folded spelling.
    entries: HashMap<String, Entry>,
}

#[derive(Debug)]
struct Entry {
    /// The spelling; absent if it equals the folded one.
    spelling: Option<String>,
    is_file: bool,
}

impl PathSet {
    /// Adds a file whose path has passed [`check`].
    pub fn add_file(&mut self, path: &str) -> Result<(), PathError> {
        for (at, _) in path.match_indices('/') {
            self.add(&path[..at], false)?;
        }
        self.add(path, true)
    }

    fn add(&mut self, path: &str, is_file: bool) -> Result<(), PathError> {
        let folded = fold(path);
        match self.entries.get(&folded) {
            None => {
                let spelling = (folded != path).then(|| path.to_owned());
                self.entries.insert(folded, Entry { spelling, is_file });
                Ok(())
            }
            Some(there) => {
                let spelling = there.spelling.as_deref().unwrap_or(&folded);
                if spelling != path {
                    Err(PathError::Collision(spelling.to_owned()))
                } else if there.is_file != is_file {
                    Err(PathError::FileAndDirectory)
                } else if is_file {
                    Err(PathError::Duplicate)
                } else {
                    Ok(())
                }
            }
        }
    }
}

/// Maps all spellings that differ in case or Unicode form to one. Converts to upper case first, because `ß` then
/// becomes `SS`.
fn fold(path: &str) -> String {
    if path.is_ascii() {
        return path.to_ascii_lowercase();
    }
    path.nfd().collect::<String>().to_uppercase().to_lowercase().nfd().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_of_paths() {
        for good in ["a", "tests/verify.py", "data/Zürich plan (1).csv", ".hidden", "a..b/c"] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for (bad, error) in [
            ("", PathError::Empty),
            ("/etc/passwd", PathError::Empty),
            ("a//b", PathError::Empty),
            ("a/", PathError::Empty),
            ("../a", PathError::Dots),
            ("a/../b", PathError::Dots),
            ("./a", PathError::Dots),
            ("a\\b", PathError::Backslash),
            ("a\0b", PathError::Control('\0')),
            ("a\x1b[31m", PathError::Control('\x1b')),
            ("a\nb", PathError::Control('\n')),
            ("a\u{9b}b", PathError::Control('\u{9b}')),
        ] {
            assert_eq!(check(bad), Err(error), "{bad:?}");
        }
        assert_eq!(check(&"x".repeat(256)), Err(PathError::TooLong));
        assert_eq!(check(&"x/".repeat(600)), Err(PathError::TooLong));
    }

    #[test]
    fn names_that_some_file_systems_confuse_collide() {
        let add = |paths: &[&str]| {
            let mut set = PathSet::default();
            paths.iter().try_for_each(|path| set.add_file(path))
        };
        assert_eq!(add(&["a/b", "a/c", "ab", "b/a"]), Ok(()));
        assert_eq!(add(&["a/b", "a/b"]), Err(PathError::Duplicate));
        assert_eq!(add(&["a", "a/b"]), Err(PathError::FileAndDirectory));
        assert_eq!(add(&["a/b", "a"]), Err(PathError::FileAndDirectory));
        assert_eq!(add(&["read.me", "READ.me"]), Err(PathError::Collision("read.me".into())));
        assert_eq!(add(&["A/x", "a/y"]), Err(PathError::Collision("A".into())));
        assert_eq!(add(&["caf\u{e9}", "cafe\u{301}"]), Err(PathError::Collision("caf\u{e9}".into())));
        assert_eq!(add(&["stra\u{df}e", "STRASSE"]), Err(PathError::Collision("stra\u{df}e".into())));
    }
}
