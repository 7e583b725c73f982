//! The full screen: trials as they run, and what the selected one does.

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
