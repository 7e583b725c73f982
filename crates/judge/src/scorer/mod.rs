//! The standard scorer: typed answers against a submission.
