//! HTTP calls: connections, proxies, redirects, limits, and the one rule of pauses between attempts.
//!
//! [`Client`] serves everything but model calls: Prime's API, the Hugging Face hub, heartbeats. Model calls use a
//! separate transport, because they stream and their overhead is measured in microseconds; they share the pools of
//! connections ([`Ways`]) and [`pause`].

mod address;
mod client;
pub mod pause;
mod ways;

pub use address::{BadAddress, below, checked, is_loopback};
pub use client::{Answer, Body, Call, Client, Content, Failure, Options, Redirects};
pub use ways::{Proxies, Way, Ways};

pub const USER_AGENT: &str = concat!("aec-bench/", env!("CARGO_PKG_VERSION"));

/// Longest excerpt of a server's text.
const LONGEST_EXCERPT: usize = 600;

/// Makes one line without control characters and shortens it.
pub fn excerpt(text: &str) -> String {
    let line: String =
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LONGEST_EXCERPT).collect();
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.chars().nth(LONGEST_EXCERPT).is_some() { format!("{line}…") } else { line }
}

/// A network error with its causes. The outermost error names only the layer that noticed, so it is left out if it
/// has a cause. The text never contains the address.
pub fn causes(error: &dyn std::error::Error) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut cause = Some(error.source().unwrap_or(error));
    while let Some(error) = cause {
        let text = error.to_string();
        if words.last().is_none_or(|last| !last.contains(&text)) {
            words.push(text);
        }
        cause = error.source();
    }
    words.join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpts_are_one_short_line() {
        assert_eq!(excerpt(" a\n\u{7}b\t c "), "a b c");
        let long = excerpt(&"é".repeat(5000));
        assert_eq!(long.chars().count(), LONGEST_EXCERPT + 1);
        assert!(long.ends_with('…'));
    }
}
