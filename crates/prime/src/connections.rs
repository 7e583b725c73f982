//! What every connection to the outside shares: encryption, which addresses may be used, and errors in one line.

use std::error::Error as _;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::ClientBuilder;
use reqwest::redirect::Policy;
use rustls::{ClientConfig, RootCertStore};
use url::{Host, Url};

/// Who is asking.
pub(crate) const USER_AGENT: &str = concat!("aec-bench/", env!("CARGO_PKG_VERSION"));

/// Longest excerpt of what a server said.
const LONGEST_EXCERPT: usize = 600;

/// Clients for other machines and for this one. A proxy is never asked for addresses on this machine.
#[derive(Clone, Debug)]
pub struct Clients {
    remote: reqwest::Client,
    local: reqwest::Client,
}

impl Clients {
    /// Clients that follow redirects as `policy` says and repeat nothing by themselves.
    pub fn new(
        connect_timeout: Duration,
        proxy: Option<&str>,
        policy: impl Fn() -> Policy,
    ) -> Result<Self, String> {
        let encryption = encryption()?;
        let builder = || -> ClientBuilder {
            reqwest::Client::builder()
                .no_proxy()
                .redirect(policy())
                .retry(reqwest::retry::never())
                .connect_timeout(connect_timeout)
                .user_agent(USER_AGENT)
                .tls_backend_preconfigured(encryption.clone())
        };
        let unusable = |error: reqwest::Error| causes(&error);
        let mut remote = builder();
        if let Some(proxy) = proxy {
            remote = remote.proxy(reqwest::Proxy::all(proxy).map_err(unusable)?);
        }
        Ok(Self { remote: remote.build().map_err(unusable)?, local: builder().build().map_err(unusable)? })
    }

    /// The client for an address.
    pub fn of(&self, url: &Url) -> &reqwest::Client {
        if is_loopback(url) { &self.local } else { &self.remote }
    }
}

/// TLS with the certificates of the system. Without any, connections are refused, which is said when one is made.
fn encryption() -> Result<ClientConfig, String> {
    // Reading the system's certificates takes longer than anything else here.
    static ROOTS: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    let roots = ROOTS.get_or_init(|| {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Arc::new(roots)
    });
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| excerpt(&error.to_string()))?;
    Ok(builder.with_root_certificates(Arc::clone(roots)).with_no_client_auth())
}

/// Whether an address is on this machine.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => IpAddr::V4(address).is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::V6(address).is_loopback(),
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        None => false,
    }
}

/// One line without control characters, cut where it gets long.
pub fn excerpt(text: &str) -> String {
    let line: String =
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LONGEST_EXCERPT).collect();
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.chars().nth(LONGEST_EXCERPT).is_some() { format!("{line}…") } else { line }
}

/// An error with its causes, without the address, which may hold a signature.
pub fn causes(error: &reqwest::Error) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if words.last().is_none_or(|last| !last.contains(&text)) {
            words.push(text);
        }
        cause = error.source();
    }
    if words.is_empty() {
        words.push("the request cannot be sent".to_owned());
    }
    excerpt(&words.join(": "))
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
    fn excerpts_are_one_short_line() {
        assert_eq!(excerpt(" a\n\u{7}b\t c "), "a b c");
        let long = excerpt(&"é".repeat(5000));
        assert_eq!(long.chars().count(), LONGEST_EXCERPT + 1);
        assert!(long.ends_with('…'));
    }
}
