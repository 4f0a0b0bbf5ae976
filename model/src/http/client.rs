//! The HTTP client, made at the first request, with a thread of its own.

use reqwest::{RequestBuilder, Response, Url};
use rustls::RootCertStore;
use rustls_native_certs::CertificateResult;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// A client that does not exist before it is wanted.
#[derive(Default)]
pub(super) struct Lazy(OnceLock<Result<Client, String>>);

impl Lazy {
    /// The client for `url`; an error says what is missing on this machine.
    pub(super) fn get(&self, url: &Url) -> Result<&Client, String> {
        self.0.get_or_init(|| Client::new(url.scheme())).as_ref().map_err(Clone::clone)
    }
}

/// What speaks with a server. Connections live on a thread of their own, which alone is busy with whatever a server sends: a
/// look-up that does not come back, or heads of answers (1xx) without end, which are read before anything is told of them.
pub(super) struct Client {
    client: reqwest::Client,
    thread: Handle,
    /// The thread ends when this goes.
    _wanted: oneshot::Sender<()>,
}

impl Client {
    fn new(scheme: &str) -> Result<Client, String> {
        let client = make(scheme)?;
        let failed = |error: std::io::Error| format!("the thread of the HTTP client cannot be started: {error}");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let thread = runtime.handle().clone();
        let (_wanted, over) = oneshot::channel();
        let named = std::thread::Builder::new().name("http".to_owned());
        // What ends the wait is that the other side is gone: nothing is ever sent.
        named.spawn(move || runtime.block_on(over).unwrap_or_default()).map_err(failed)?;
        Ok(Client { client, thread, _wanted })
    }

    /// A request to `url`, to be sent with [`Client::send`].
    pub(super) fn post(&self, url: Url) -> RequestBuilder {
        self.client.post(url)
    }

    /// Sends `request` and gives the head of its answer. A future that is dropped before takes the connection with it.
    pub(super) async fn send(&self, request: RequestBuilder) -> reqwest::Result<Response> {
        let mut exchange = JoinSet::new();
        exchange.spawn_on(request.send(), &self.thread);
        match exchange.join_next().await.expect("one was spawned") {
            Ok(answered) => answered,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
}

fn make(scheme: &str) -> Result<reqwest::Client, String> {
    let roots = match scheme {
        "https" => roots(rustls_native_certs::load_native_certs())?,
        _ => RootCertStore::empty(),
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be set up: {error}"))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    reqwest::Client::builder()
        .user_agent(concat!("autosage/", env!("CARGO_PKG_VERSION")))
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(Duration::from_secs(30))
        .tls_backend_preconfigured(tls)
        .build()
        .map_err(|error| format!("the HTTP client cannot be set up: {error}"))
}

/// The system's certificates.
fn roots(found: CertificateResult) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let why = found.errors.first().map(|error| format!(" ({error})")).unwrap_or_default();
        return Err(format!("this machine has no certificates to check https with{why}: install the package ca-certificates"));
    }
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_certificates_is_told_the_package() {
        let error = roots(CertificateResult::default()).unwrap_err();
        assert!(error.contains("install the package ca-certificates"), "{error}");
    }
}
