//! No room at all.
