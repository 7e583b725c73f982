//! Ways to an endpoint: plain, encrypted, or through the proxy that the environment names. Each has its own pool of
//! connections.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use aec_base::env::Env;
use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::{Builder, Client, Error};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::{ClientConfig, RootCertStore};

/// How long a connection may take to open.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// How long an idle connection is kept.
const IDLE_TIME: Duration = Duration::from_mins(1);

type Body = Full<Bytes>;

/// All ways, made when they are first needed: reading the system's certificates takes longer than starting the program.
#[derive(Debug)]
pub(crate) struct Ways {
    plain: Way,
    encrypted: OnceLock<Way>,
    proxied: Mutex<HashMap<Uri, Way>>,
    proxies: Matcher,
}

/// One way.
#[derive(Clone)]
pub(crate) enum Way {
    Plain(Client<HttpConnector, Body>),
    Encrypted(Client<HttpsConnector<HttpConnector>, Body>),
    Proxied(Client<HttpsConnector<Tunnel<HttpConnector>>, Body>),
}

impl Ways {
    /// Ways that honour the proxies which the environment names.
    pub(crate) fn new(env: &Env) -> Self {
        let variable = |upper: &str| {
            let lower = upper.to_lowercase();
            env.get(&lower).or_else(|| env.get(upper)).unwrap_or_default().to_owned()
        };
        let proxies = Matcher::builder()
            .all(variable("ALL_PROXY"))
            .http(variable("HTTP_PROXY"))
            .https(variable("HTTPS_PROXY"))
            .no(variable("NO_PROXY"))
            .build();
        Self {
            plain: Way::Plain(pool().build(connector())),
            encrypted: OnceLock::new(),
            proxied: Mutex::default(),
            proxies,
        }
    }

    /// The way to an address. Nothing on this machine is reached through a proxy.
    pub(crate) fn to(&self, address: &Uri, is_loopback: bool) -> Way {
        let plain = address.scheme_str() == Some("http");
        if let Some(proxy) = self.proxies.intercept(address).filter(|_| !is_loopback) {
            return self.through(&proxy);
        }
        if plain {
            return self.plain.clone();
        }
        self.encrypted.get_or_init(|| Way::Encrypted(pool().build(encrypt(connector())))).clone()
    }

    fn through(&self, proxy: &Intercept) -> Way {
        let mut known = self.proxied.lock().unwrap_or_else(PoisonError::into_inner);
        let way = known.entry(proxy.uri().clone()).or_insert_with(|| {
            let mut tunnel = Tunnel::new(proxy.uri().clone(), connector());
            if let Some(auth) = proxy.basic_auth() {
                tunnel = tunnel.with_auth(auth.clone());
            }
            Way::Proxied(pool().build(encrypt(tunnel)))
        });
        way.clone()
    }
}

impl Way {
    /// Sends a request; the answer as soon as its head is there.
    pub(crate) async fn send(&self, mut request: Request<Body>) -> Result<Response<Incoming>, Error> {
        match self {
            Self::Plain(client) => client.request(request).await,
            Self::Encrypted(client) => client.request(request).await,
            Self::Proxied(client) => {
                if let Some(uri) = with_port(request.uri()) {
                    *request.uri_mut() = uri;
                }
                client.request(request).await
            }
        }
    }
}

/// A plain address with its port written out, which a tunnel otherwise takes for that of an encrypted one.
fn with_port(uri: &Uri) -> Option<Uri> {
    let authority = uri.authority().filter(|authority| authority.port().is_none())?;
    let plain = uri.scheme_str() == Some("http");
    let path = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    plain.then(|| format!("http://{authority}:80{path}").parse().ok()).flatten()
}

impl fmt::Debug for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain(_) => "plain",
            Self::Encrypted(_) => "encrypted",
            Self::Proxied(_) => "proxied",
        })
    }
}

/// HTTP/1.1 only, one call per connection: with HTTP/2 calls queue behind the stream limit of a single one.
fn pool() -> Builder {
    let mut builder = Client::builder(TokioExecutor::new());
    builder.pool_max_idle_per_host(8192).pool_idle_timeout(IDLE_TIME).pool_timer(TokioTimer::new());
    builder
}

fn connector() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT_TIME));
    connector
}

/// Certificates are those of the system. A system without any can still call what is not encrypted.
fn encrypt<C>(inner: C) -> HttpsConnector<C> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let versions =
        ClientConfig::builder_with_provider(provider).with_protocol_versions(rustls::DEFAULT_VERSIONS);
    #[expect(clippy::expect_used, reason = "the provider has the suites of its own default versions")]
    let config = versions.expect("TLS 1.2 and 1.3").with_root_certificates(roots).with_no_client_auth();
    HttpsConnectorBuilder::new().with_tls_config(config).https_or_http().enable_http1().wrap_connector(inner)
}
