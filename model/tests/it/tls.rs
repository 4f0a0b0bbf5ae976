//! https: what this machine does not trust is not asked.

use crate::support::{CHAT, Stepped};
use model::{Access, Ask, Purse, connect};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use trace::{Fault, FaultClass, Stop};

#[test]
fn a_certificate_that_is_not_trusted_ends_the_request_at_once() {
    let stores = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];
    if !stores.iter().any(|path| Path::new(path).exists()) {
        println!("skipped: no ca-certificates");
        #[allow(clippy::disallowed_methods, reason = "it says what may not be skipped here")]
        let required = std::env::var("AUTOSAGE_REQUIRE").unwrap_or_default();
        assert!(!required.contains("ca-certificates"));
        return;
    }
    let certificate = CertificateDer::from(include_bytes!("untrusted.cert.der").to_vec());
    let key = PrivateKeyDer::Pkcs8(include_bytes!("untrusted.key.der").to_vec().into());
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base_url = format!("https://{}/v1", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut connection = ServerConnection::new(Arc::new(config)).unwrap();
        connection.complete_io(&mut stream).unwrap_err().to_string()
    });
    let (model, clock) = (connect(CHAT.spec(&base_url), Access::default()), Stepped::default());
    let ask = Ask { body: "{}", purse: Purse::default(), heard: &|_| (), clock: &clock };
    let replied = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(model.ask(ask));
    let Stop::Error(Fault { class, message, .. }) = replied.stop else { panic!("{:?}", replied.stop) };
    assert!(server.join().unwrap().contains("alert"));
    assert_eq!((class, replied.attempts.len()), (FaultClass::Rejected, 1), "{message}");
    assert!(message.contains("certificate is not trusted"), "{message}");
}
