//! The full screen: trials while they run, and the trace of the selected one.

mod detail;
mod draw;
mod header;
mod list;
mod pen;
#[cfg(test)]
mod tests;
mod view;

pub(crate) use self::draw::draw;
pub(crate) use self::view::View;
