//! Paths in the workspace as models write them. `python/environment/tree.py` takes and refuses the same ones.

use aec_base::text::printable;

use super::workspace::ROOT;

const LONGEST_PART: usize = 255;
const LONGEST: usize = 1024;

/// A path that is not taken.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum PathError {
    #[error("the path is not a text without NUL")]
    Nul,
    #[error("{} is not below {ROOT}", printable(.0))]
    Outside(String),
    #[error("{} has `..` as a part", printable(.0))]
    Upwards(String),
    #[error("the path is too long")]
    TooLong,
}

/// The parts of a path below the workspace: relative, or absolute below it.
pub(super) fn parts(path: &str) -> Result<Vec<&str>, PathError> {
    if path.contains('\0') {
        return Err(PathError::Nul);
    }
    let below = match path.strip_prefix(ROOT) {
        Some("") => "",
        Some(rest) if rest.starts_with('/') => &rest[1..],
        _ if path.starts_with('/') => return Err(PathError::Outside(path.to_owned())),
        _ => path,
    };
    let parts: Vec<&str> = below.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    if parts.contains(&"..") {
        return Err(PathError::Upwards(path.to_owned()));
    }
    if parts.iter().any(|part| part.len() > LONGEST_PART) || path.chars().count() > LONGEST {
        return Err(PathError::TooLong);
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_below_the_workspace() {
        for (path, expected) in [
            ("a.md", vec!["a.md"]),
            ("./a//b/", vec!["a", "b"]),
            ("/workspace/a/b", vec!["a", "b"]),
            ("/workspace", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(parts(path).unwrap(), expected, "{path}");
        }
        for path in ["/etc/passwd", "/workspaces/x", "..", "a/../b", "/workspace/../x", "a\0b"] {
            assert!(parts(path).is_err(), "{path}");
        }
        assert_eq!(parts(&"x".repeat(256)), Err(PathError::TooLong));
    }
}
