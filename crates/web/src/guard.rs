//! Decides who may send requests: the browser of the user who started this server, and anyone who has the token.
//!
//! A page of another origin must neither read nor trigger anything here, whatever host name it points at this machine.

use std::net::{IpAddr, SocketAddr};

use aec_base::digest::Digest;
use aec_base::secret::Secret;
use http::header::{AUTHORIZATION, COOKIE, HOST, HeaderMap, ORIGIN};
use http::request::Parts;
use http::{Method, StatusCode};

use crate::href::Asked;

const LONGEST_ADDRESS: usize = 4096;

pub(crate) struct Guard {
    /// The host name that the server was told to listen on.
    name: String,
    address: SocketAddr,
    token: Option<Secret>,
    /// The cookie of a browser that showed the token. It is not the token, and expires with this process.
    session: String,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Pass {
    Go,
    /// The token was in the address: it goes into a cookie, and the browser is redirected to the address without it.
    Keep {
        cookie: String,
        address: String,
    },
    Refuse(StatusCode, &'static str),
}

impl Guard {
    pub(crate) fn new(name: &str, address: SocketAddr, token: Option<Secret>, session: String) -> Self {
        Self { name: name.to_ascii_lowercase(), address, token, session }
    }

    /// Checks the head of a request.
    pub(crate) fn check(&self, head: &Parts, asked: Option<&Asked>) -> Pass {
        if head.method != Method::GET && head.method != Method::HEAD {
            return Pass::Refuse(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are answered here");
        }
        if head.uri.to_string().len() > LONGEST_ADDRESS {
            return Pass::Refuse(StatusCode::URI_TOO_LONG, "the address is too long");
        }
        if has_body(&head.headers) {
            return Pass::Refuse(StatusCode::PAYLOAD_TOO_LARGE, "a request has no body here");
        }
        if !self.is_for_us(head) {
            return Pass::Refuse(
                StatusCode::MISDIRECTED_REQUEST,
                "the name in the address is not the one that this server listens on",
            );
        }
        if !self.is_from_us(&head.headers) {
            return Pass::Refuse(StatusCode::FORBIDDEN, "another site asked for this");
        }
        match asked {
            None => Pass::Refuse(StatusCode::BAD_REQUEST, "the address is not readable"),
            Some(asked) => self.admit(&head.headers, asked),
        }
    }

    /// Whether every host name in the request is ours. Another person's name may point here at any time.
    fn is_for_us(&self, head: &Parts) -> bool {
        let mut hosts = head.headers.get_all(HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
        let named = head.uri.authority().is_none_or(|authority| self.is_ours(authority.as_str()));
        named && host.to_str().is_ok_and(|host| self.is_ours(host))
    }

    fn is_ours(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if !port.contains(']') => (name, port.parse::<u16>().ok()),
            _ => (host.as_str(), Some(80)),
        };
        if port != Some(self.address.port()) {
            return false;
        }
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        match bare.parse::<IpAddr>() {
            // A numeric address cannot be made to point elsewhere.
            Ok(ip) => {
                let ours = self.address.ip();
                ip == ours || ours.is_unspecified() || (ours.is_loopback() && ip.is_loopback())
            }
            Err(_) => {
                let local = self.address.ip().is_loopback() || self.address.ip().is_unspecified();
                bare == self.name || (local && bare == "localhost")
            }
        }
    }

    /// Whether no other site takes part in the request. Browsers declare it; other programs send nothing.
    fn is_from_us(&self, headers: &HeaderMap) -> bool {
        let ours = |origin: &str| origin.strip_prefix("http://").is_some_and(|host| self.is_ours(host));
        if headers.get_all(ORIGIN).iter().any(|origin| !origin.to_str().is_ok_and(ours)) {
            return false;
        }
        let said = |name: &str| headers.get(name).map_or("", |value| value.to_str().unwrap_or("?"));
        // Other ports of this machine are the same site but other origins.
        match said("sec-fetch-site") {
            "" | "same-origin" | "none" => true,
            _ => said("sec-fetch-mode") == "navigate" && said("sec-fetch-dest") == "document",
        }
    }

    fn admit(&self, headers: &HeaderMap, asked: &Asked) -> Pass {
        let Some(token) = &self.token else { return Pass::Go };
        if let Some(shown) = asked.get("token") {
            return if same(shown, token.reveal()) {
                let cookie =
                    format!("{}={}; HttpOnly; SameSite=Strict; Path=/", self.cookie_name(), self.session);
                Pass::Keep { cookie, address: asked.without("token").as_str().to_owned() }
            } else {
                Pass::Refuse(StatusCode::UNAUTHORIZED, "the token is wrong")
            };
        }
        let bearer = |value: &str| {
            let (scheme, shown) = value.split_once(' ').unwrap_or(("", ""));
            scheme.eq_ignore_ascii_case("bearer") && same(shown.trim(), token.reveal())
        };
        let text = |name| headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
        let kept = |value: &str| {
            value
                .split(';')
                .filter_map(|pair| pair.trim().split_once('='))
                .any(|(name, value)| name == self.cookie_name() && same(value, &self.session))
        };
        if text(AUTHORIZATION).any(bearer) || text(COOKIE).any(kept) {
            return Pass::Go;
        }
        Pass::Refuse(StatusCode::UNAUTHORIZED, "every page needs the token")
    }

    /// Cookies do not distinguish ports, so the name contains the port.
    fn cookie_name(&self) -> String {
        format!("aec_bench_{}", self.address.port())
    }
}

/// Compares in a time that does not reveal how far two texts agree.
fn same(shown: &str, known: &str) -> bool {
    Digest::of(shown.as_bytes()) == Digest::of(known.as_bytes())
}

fn has_body(headers: &HeaderMap) -> bool {
    let length = headers.get(http::header::CONTENT_LENGTH);
    length.is_some_and(|length| length != "0") || headers.contains_key(http::header::TRANSFER_ENCODING)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    fn check(guard: &Guard, line: &str, headers: &[(&str, &str)]) -> Pass {
        let (method, address) = line.split_once(' ').unwrap();
        let mut request = http::Request::builder().method(method).uri(address);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        let asked = Asked::read(head.uri.path(), head.uri.query());
        guard.check(&head, asked.as_ref())
    }

    fn status(pass: &Pass) -> u16 {
        match pass {
            Pass::Go => 200,
            Pass::Keep { .. } => 303,
            Pass::Refuse(status, _) => status.as_u16(),
        }
    }

    fn guard(name: &str, address: &str, token: Option<&str>) -> Guard {
        Guard::new(name, address.parse().unwrap(), token.map(Secret::new), "session".to_owned())
    }

    #[test]
    fn only_names_of_this_server_are_answered() {
        let local = guard("127.0.0.1", "127.0.0.1:8710", None);
        for (host, expected) in [
            ("127.0.0.1:8710", 200),
            ("localhost:8710", 200),
            ("LOCALHOST:8710", 200),
            ("[::1]:8710", 200),
            ("127.0.0.1:8711", 421),
            ("127.0.0.1", 421),
            ("evil.example:8710", 421),
            ("localhost.evil.example:8710", 421),
            ("evil.example", 421),
            ("192.168.0.1:8710", 421),
            ("localhost:8710:8710", 421),
            ("", 421),
        ] {
            assert_eq!(status(&check(&local, "GET /", &[("host", host)])), expected, "{host}");
        }
        assert_eq!(status(&check(&local, "GET /", &[])), 421);
        let two = [("host", "localhost:8710"), ("host", "evil.example:8710")];
        assert_eq!(status(&check(&local, "GET /", &two)), 421);
        let absolute = check(&local, "GET http://evil.example:8710/", &[("host", "localhost:8710")]);
        assert_eq!(status(&absolute), 421);
        let open = guard("0.0.0.0", "0.0.0.0:80", Some(TOKEN));
        let bearer = ("authorization", "Bearer 0123456789abcdef");
        for (host, expected) in [("192.168.0.7", 200), ("localhost", 200), ("evil.example", 421)] {
            assert_eq!(status(&check(&open, "GET /", &[("host", host), bearer])), expected, "{host}");
        }
    }

    #[test]
    fn other_sites_get_nothing_but_a_link_to_us() {
        let local = guard("127.0.0.1", "127.0.0.1:8710", None);
        let host = ("host", "127.0.0.1:8710");
        for (headers, expected) in [
            (vec![("origin", "http://127.0.0.1:8710")], 200),
            (vec![("origin", "http://evil.example")], 403),
            (vec![("origin", "https://127.0.0.1:8710")], 403),
            (vec![("origin", "http://localhost:3000")], 403),
            (vec![("origin", "null")], 403),
            (vec![("sec-fetch-site", "same-origin")], 200),
            (vec![("sec-fetch-site", "none")], 200),
            (vec![("sec-fetch-site", "cross-site")], 403),
            (vec![("sec-fetch-site", "same-site"), ("sec-fetch-mode", "cors")], 403),
            (vec![("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")], 403),
            (vec![("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")], 403),
            (
                vec![
                    ("sec-fetch-site", "cross-site"),
                    ("sec-fetch-mode", "navigate"),
                    ("sec-fetch-dest", "iframe"),
                ],
                403,
            ),
            (
                vec![
                    ("sec-fetch-site", "cross-site"),
                    ("sec-fetch-mode", "navigate"),
                    ("sec-fetch-dest", "document"),
                ],
                200,
            ),
        ] {
            let all: Vec<(&str, &str)> = headers.iter().copied().chain([host]).collect();
            assert_eq!(status(&check(&local, "GET /", &all)), expected, "{headers:?}");
        }
    }

    #[test]
    fn only_plain_requests_are_answered() {
        let local = guard("127.0.0.1", "127.0.0.1:8710", None);
        let host = ("host", "127.0.0.1:8710");
        for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"] {
            let address = if method == "CONNECT" { "127.0.0.1:8710" } else { "/" };
            assert_eq!(status(&check(&local, &format!("{method} {address}"), &[host])), 405, "{method}");
        }
        assert_eq!(status(&check(&local, "HEAD /", &[host])), 200);
        assert_eq!(status(&check(&local, &format!("GET /{}", "a".repeat(5000)), &[host])), 414);
        assert_eq!(status(&check(&local, "GET /", &[host, ("content-length", "5")])), 413);
        assert_eq!(status(&check(&local, "GET /", &[host, ("content-length", "0")])), 200);
        assert_eq!(status(&check(&local, "GET /", &[host, ("transfer-encoding", "chunked")])), 413);
        assert_eq!(status(&check(&local, "GET /%ff", &[host])), 400);
    }

    #[test]
    fn with_a_token_nothing_is_answered_without_it() {
        let open = guard("10.0.0.5", "10.0.0.5:9000", Some(TOKEN));
        let host = ("host", "10.0.0.5:9000");
        for (headers, expected) in [
            (vec![], 401),
            (vec![("authorization", "Bearer 0123456789abcdef")], 200),
            (vec![("authorization", "bearer 0123456789abcdef")], 200),
            (vec![("authorization", "Bearer 0123456789abcde")], 401),
            (vec![("authorization", "Basic 0123456789abcdef")], 401),
            (vec![("cookie", "other=1; aec_bench_9000=session")], 200),
            (vec![("cookie", "aec_bench_9000=0123456789abcdef")], 401),
            (vec![("cookie", "aec_bench_9001=session")], 401),
        ] {
            let all: Vec<(&str, &str)> = headers.iter().copied().chain([host]).collect();
            assert_eq!(status(&check(&open, "GET /library?q=x", &all)), expected, "{headers:?}");
        }
        assert_eq!(status(&check(&open, "GET /?token=wrong", &[host])), 401);
        let kept = check(&open, "GET /library?token=0123456789abcdef&q=x", &[host]);
        let cookie = "aec_bench_9000=session; HttpOnly; SameSite=Strict; Path=/".to_owned();
        assert_eq!(kept, Pass::Keep { cookie, address: "/library?q=x".to_owned() });
    }
}
