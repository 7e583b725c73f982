//! Checks of addresses before they are called.

use std::net::IpAddr;

use url::{Host, Url};

use crate::excerpt;

/// An address that must not or cannot be called.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct BadAddress {
    /// Scheme and host; empty if the text is not a URL, because it may then be anything, even a secret.
    pub address: String,
    pub reason: &'static str,
}

/// Parses an address that may receive keys and results: it must use https or be on this machine, and name no user.
pub fn checked(text: &str) -> Result<Url, BadAddress> {
    let bad = |address: &str, reason| BadAddress { address: address.to_owned(), reason };
    let url = Url::parse(text).map_err(|_| bad("", "it must look like https://host"))?;
    let shown = excerpt(&format!("{}://{}", url.scheme(), url.host_str().unwrap_or_default()));
    if url.host().is_none() {
        return Err(bad(&shown, "it must look like https://host"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(bad(&shown, "it must not hold a user or password"));
    }
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_loopback(&url) => Ok(url),
        "http" => Err(bad(&shown, "keys and results are not sent without encryption; use https")),
        _ => Err(bad(&shown, "it must begin with https://")),
    }
}

/// An address below a checked one, with every segment escaped.
pub fn below(base: &Url, path: &[&str]) -> Url {
    let mut url = base.clone();
    url.set_query(None);
    url.set_fragment(None);
    // Addresses with a host always have a path, and a checked address has a host.
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.pop_if_empty().extend(path);
    }
    url
}

pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => IpAddr::V4(address).is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::V6(address).is_loopback(),
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        None => false,
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn only_this_machine_is_loopback() {
        for (address, expected) in [
            ("http://127.0.0.1:8", true),
            ("http://127.9.0.1", true),
            ("http://[::1]:9", true),
            ("http://LOCALHOST", true),
            ("http://localhost.a.test", false),
            ("http://127.0.0.1.a.test", false),
            ("http://0.0.0.0", false),
            ("data:text/plain,x", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(address).unwrap()), expected, "{address}");
        }
    }

    #[test]
    fn keys_travel_encrypted_or_stay_here() {
        for good in ["https://a.test", "http://127.0.0.1:8/x", "http://[::1]:9", "http://localhost:7"] {
            checked(good).unwrap();
        }
        for bad in ["http://a.test", "http://127.0.0.1.a.test", "http://localhost.a.test", "http://0.0.0.0"] {
            let error = checked(bad).unwrap_err().to_string();
            assert!(error.contains("without encryption"), "{bad}: {error}");
        }
        for bad in ["", "pit_secret", "a.test", "ftp://a.test", "https://", "https://user:pit_secret@a.test"]
        {
            let error = checked(bad).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("pit_secret"), "{error}");
        }
    }

    #[test]
    fn names_cannot_leave_their_place_in_an_address() {
        let base = Url::parse("https://a.test/root/?old=1#there").unwrap();
        let url = below(&base, &["x", "a/../b?c#d%2f", ""]);
        assert_eq!(url.as_str(), "https://a.test/root/x/a%2F..%2Fb%3Fc%23d%252f/");
    }
}
