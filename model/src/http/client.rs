//! The HTTP client, made at the first request.

use rustls::RootCertStore;
use rustls_native_certs::CertificateResult;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// A client that does not exist before it is wanted.
#[derive(Default)]
pub(super) struct Lazy(OnceLock<Result<reqwest::Client, String>>);

impl Lazy {
    /// The client for `url`; an error says what is missing on this machine.
    pub(super) fn get(&self, url: &reqwest::Url) -> Result<&reqwest::Client, String> {
        self.0.get_or_init(|| make(url.scheme())).as_ref().map_err(Clone::clone)
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
