//! Files that do not belong to a task, and paths that are valid on every machine.

pub use aec_base::archive::paths::{PathError, PathSet, check};

/// Whether a directory entry does not belong to a task, such as what Python, the Finder and editors leave behind.
pub fn is_left_out(name: &str) -> bool {
    name == "__pycache__"
        || name == ".DS_Store"
        || name.ends_with(".pyc")
        || name.ends_with('~')
        || name.starts_with(".#")
        || (name.len() > 1 && name.starts_with('#') && name.ends_with('#'))
        || (name.starts_with('.') && [".swp", ".swo", ".swx"].iter().any(|end| name.ends_with(end)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_editors_leave_is_no_part_of_a_task() {
        for name in ["__pycache__", "a.pyc", ".DS_Store", "a.py~", ".#a.py", "#a.py#", ".a.py.swp", ".swo"] {
            assert!(is_left_out(name), "{name}");
        }
        for name in ["pycache", "a.py", "#", "a#", "b.swp", ".gitignore", "__init__.py"] {
            assert!(!is_left_out(name), "{name}");
        }
    }
}
