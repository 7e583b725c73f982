//! Where commands run without doing harm. So far: what this host offers for it.

pub mod host;
pub mod python;
