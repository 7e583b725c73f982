//! The Python sources that every package carries. They are the same in all of them: what differs is in `tasks.json`.

/// Path in the module, and text.
pub(crate) const FILES: [(&str, &str); 0] = [];
