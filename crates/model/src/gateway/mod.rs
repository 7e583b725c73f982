//! To come.

pub mod anthropic;
pub mod openai;
