//! Templates: parameters, draws, prompts, instances, suites and their replay.

pub mod catalogue;
mod check;
mod derive;
mod draw;
pub mod engine;
mod expression;
mod floor;
pub mod generate;
mod grid;
mod instance;
pub mod library;
pub mod manifest;
pub mod params;
pub mod produce;
mod publish;
mod render;
pub mod replay;
mod scaffold;
pub mod single;
pub mod suite;
pub mod template;
pub mod validate;
mod value;

pub use scaffold::new_template;
