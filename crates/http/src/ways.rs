//! Connections to an endpoint: plain, encrypted, or through the proxy that the environment names. Each kind has its
//! own pool.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use aec_base::env::Env;
use http::uri::PathAndQuery;
use http::{Request, Response, Uri};
use hyper::body::{Body, Incoming};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::{Builder, Client, Error};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::{ClientConfig, RootCertStore};

/// How long an idle connection is kept.
const IDLE_TIME: Duration = Duration::from_mins(1);

/// The proxies that the environment names: `HTTP_PROXY`, `HTTPS_PROXY` and `ALL_PROXY`, except for hosts in
/// `NO_PROXY`; names in lower case work too. All requests through a proxy use a tunnel.
#[derive(Clone, Debug)]
pub struct Proxies {
    matcher: Arc<Matcher>,
    unusable: Option<&'static str>,
}

impl Proxies {
    pub fn of(env: &Env) -> Self {
        let variable = |upper: &str| {
            let lower = upper.to_lowercase();
            env.get(&lower).or_else(|| env.get(upper)).unwrap_or_default().to_owned()
        };
        let matcher = Matcher::builder()
            .all(variable("ALL_PROXY"))
            .http(variable("HTTP_PROXY"))
            .https(variable("HTTPS_PROXY"))
            .no(variable("NO_PROXY"))
            .build();
        let somewhere = Uri::from_static("http://somewhere.test");
        let unusable = ["ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY"].into_iter().find(|name| {
            let value = variable(name);
            // The matcher drops a proxy that it cannot parse, so that it intercepts nothing.
            !value.is_empty() && Matcher::builder().all(value).build().intercept(&somewhere).is_none()
        });
        Self { matcher: Arc::new(matcher), unusable }
    }

    /// The variable whose value is not a valid proxy.
    pub(crate) fn unusable(&self) -> Option<&'static str> {
        self.unusable
    }
}

impl Default for Proxies {
    /// No proxies.
    fn default() -> Self {
        Self::of(&Env::default())
    }
}

/// All kinds of connection, made when they are first needed: reading the system's certificates takes longer than
/// starting the program.
#[derive(Debug)]
pub struct Ways<B> {
    plain: Way<B>,
    encrypted: OnceLock<Way<B>>,
    proxied: Mutex<HashMap<Uri, Way<B>>>,
    proxies: Proxies,
    connect_timeout: Duration,
}

/// One kind of connection, for requests with bodies of type `B`.
pub enum Way<B> {
    Plain(Client<HttpConnector, B>),
    Encrypted(Client<HttpsConnector<HttpConnector>, B>),
    Proxied(Client<HttpsConnector<Tunnel<HttpConnector>>, B>),
}

impl<B> Ways<B>
where
    B: Body + Send + Unpin + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    pub fn new(proxies: Proxies, connect_timeout: Duration) -> Self {
        Self {
            plain: Way::Plain(pool().build(connector(connect_timeout))),
            encrypted: OnceLock::new(),
            proxied: Mutex::default(),
            proxies,
            connect_timeout,
        }
    }

    /// The connections to an address. Addresses on this machine are never reached through a proxy.
    pub fn to(&self, address: &Uri, is_loopback: bool) -> Way<B> {
        let plain = address.scheme_str() == Some("http");
        if let Some(proxy) = self.proxies.matcher.intercept(address).filter(|_| !is_loopback) {
            return self.through(&proxy);
        }
        if plain {
            return self.plain.clone();
        }
        let made = || Way::Encrypted(pool().build(encrypt(connector(self.connect_timeout))));
        self.encrypted.get_or_init(made).clone()
    }

    fn through(&self, proxy: &Intercept) -> Way<B> {
        let mut known = self.proxied.lock().unwrap_or_else(PoisonError::into_inner);
        let way = known.entry(proxy.uri().clone()).or_insert_with(|| {
            let mut tunnel = Tunnel::new(proxy.uri().clone(), connector(self.connect_timeout));
            if let Some(auth) = proxy.basic_auth() {
                tunnel = tunnel.with_auth(auth.clone());
            }
            Way::Proxied(pool().build(encrypt(tunnel)))
        });
        way.clone()
    }
}

impl<B> Way<B>
where
    B: Body + Send + Unpin + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    /// Sends a request and returns as soon as the head of the answer has arrived.
    pub async fn send(&self, mut request: Request<B>) -> Result<Response<Incoming>, Error> {
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

/// Adds the port to a plain address; without it a tunnel would use that of https.
fn with_port(uri: &Uri) -> Option<Uri> {
    let authority = uri.authority().filter(|authority| authority.port().is_none())?;
    let plain = uri.scheme_str() == Some("http");
    let path = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    plain.then(|| format!("http://{authority}:80{path}").parse().ok()).flatten()
}

impl<B> Clone for Way<B> {
    fn clone(&self) -> Self {
        match self {
            Self::Plain(client) => Self::Plain(client.clone()),
            Self::Encrypted(client) => Self::Encrypted(client.clone()),
            Self::Proxied(client) => Self::Proxied(client.clone()),
        }
    }
}

impl<B> fmt::Debug for Way<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain(_) => "plain",
            Self::Encrypted(_) => "encrypted",
            Self::Proxied(_) => "proxied",
        })
    }
}

/// HTTP/1.1 only, one call per connection: with HTTP/2, calls queue behind the stream limit of a single connection.
fn pool() -> Builder {
    let mut builder = Client::builder(TokioExecutor::new());
    builder.pool_max_idle_per_host(8192).pool_idle_timeout(IDLE_TIME).pool_timer(TokioTimer::new());
    builder
}

fn connector(timeout: Duration) -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(timeout));
    connector
}

/// Uses the system's certificates. A system without any can still make plain calls.
fn encrypt<C>(inner: C) -> HttpsConnector<C> {
    static ROOTS: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    let roots = ROOTS.get_or_init(|| {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Arc::new(roots)
    });
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions =
        ClientConfig::builder_with_provider(provider).with_protocol_versions(rustls::DEFAULT_VERSIONS);
    #[expect(clippy::expect_used, reason = "the provider has cipher suites for its default versions")]
    let config =
        versions.expect("TLS 1.2 and 1.3").with_root_certificates(Arc::clone(roots)).with_no_client_auth();
    HttpsConnectorBuilder::new().with_tls_config(config).https_or_http().enable_http1().wrap_connector(inner)
}
