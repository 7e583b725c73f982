//! The web interface from outside: the real binary over real projects, a plain HTTP client, and a browser.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first thing that is not as it should be"
)]

mod attacks;
mod browser;
mod evolution;
mod live;
mod pages;
mod report_page;
pub(crate) mod world;
