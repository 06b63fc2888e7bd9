//! TLS for CoAP (RFC 8323 s8.2, s9): certificates, and the ALPN identifier `coap`.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, ServerConfig,
    SignatureScheme,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

use crate::params::{ALPN, ALPN_WEB};

/// Certificates or keys that cannot be used, or a handshake that failed.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file that is not PEM, or has nothing of the kind in it.
    #[error("there is no {0} in this PEM file")]
    Pem(&'static str),
    /// Certificates that do not fit: to the key, or to anything.
    #[error("these certificates cannot be used: {0}")]
    Certificates(#[from] rustls::Error),
    /// The name of a host that no certificate can have.
    #[error("{0:?} is not a name that a certificate can have")]
    Name(String),
    /// The handshake.
    #[error("the TLS handshake failed: {0}")]
    Handshake(#[from] std::io::Error),
    /// RFC 8323 s8.2: what answers at another port than 5684 must choose `coap`.
    #[error("the server speaks TLS, but not CoAP (it did not choose `coap` by ALPN)")]
    NotCoap,
}

impl TlsError {
    /// A hint for the user.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Pem(_) | Self::Certificates(_) => {
                "give a file with certificates or a key, as PEM"
            }
            Self::Name(_) => "use a DNS name or an IP address",
            Self::NotCoap => "is this the port of coaps+tcp?",
            Self::Handshake(error) => {
                let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
                let Some(rustls::Error::InvalidCertificate(why)) = cause else {
                    return "does the server speak TLS 1.2 or 1.3 at this port?";
                };
                hint_of(why)
            }
        }
    }
}

/// What would help against a certificate that a client refuses.
fn hint_of(why: &CertificateError) -> &'static str {
    match why {
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "the certificate is for other names: use a name in its subjectAltName"
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the server needs a new certificate, unless the clock of this machine is wrong"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "is the clock of this machine right?"
        }
        // The library has no name of its own for this one.
        CertificateError::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            "the server shows the certificate of an authority: make one with basicConstraints CA:FALSE, \
             as `lowmesh keygen tls` does"
        }
        _ => "is the server's certificate trusted, or the authority that has signed it?",
    }
}

/// The certificates that a client trusts.
#[derive(Clone)]
pub struct TlsClient {
    stream: TlsConnector,
    web: TlsConnector,
}

/// The certificate of a server.
#[derive(Clone)]
pub struct TlsServer {
    stream: TlsAcceptor,
    web: TlsAcceptor,
}

impl std::fmt::Debug for TlsClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TlsClient")
    }
}
impl std::fmt::Debug for TlsServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TlsServer")
    }
}

/// Whether the peer must select CoAP by ALPN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alpn {
    /// RFC 8323 s8.2: at every port but 5684.
    Required,
    /// At port 5684.
    Optional,
    /// WebSockets, which are HTTP to TLS, and have a subprotocol of their own.
    Web,
}

/// Under WebSockets peers may offer what coaps+tcp has, as ours once did.
fn of_web() -> Vec<Vec<u8>> {
    vec![ALPN_WEB.to_vec(), ALPN.to_vec()]
}

impl TlsClient {
    /// Trusts servers with a certificate of one of these authorities (PEM).
    pub fn trusting(authorities: &[u8]) -> Result<Self, TlsError> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(authorities)? {
            roots.add(certificate)?;
        }
        let builder = ClientConfig::builder_with_provider(provider());
        let builder = builder.with_safe_default_protocol_versions()?;
        Ok(Self::with(builder.with_root_certificates(roots).with_no_client_auth()))
    }
    /// Trusts every server, whatever its certificate; only for tests, because anybody can be in the middle.
    pub fn insecure() -> Result<Self, TlsError> {
        let builder = ClientConfig::builder_with_provider(provider());
        let builder = builder.with_safe_default_protocol_versions()?;
        let anyone = Arc::new(Anyone(provider()));
        let builder = builder.dangerous().with_custom_certificate_verifier(anyone);
        Ok(Self::with(builder.with_no_client_auth()))
    }
    fn with(mut config: ClientConfig) -> Self {
        config.alpn_protocols = vec![ALPN.to_vec()];
        let stream = Arc::new(config.clone()).into();
        // No other: a port of coaps+tcp, to which somebody in the middle may lead, then ends the handshake.
        config.alpn_protocols = vec![ALPN_WEB.to_vec()];
        Self { stream, web: Arc::new(config).into() }
    }
    /// Performs the handshake with the host of this name or address.
    pub async fn connect<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        host: &str,
        stream: S,
        alpn: Alpn,
    ) -> Result<client::TlsStream<S>, TlsError> {
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|_| TlsError::Name(host.to_owned()))?;
        let connector = if alpn == Alpn::Web { &self.web } else { &self.stream };
        let stream = connector.connect(name, stream).await?;
        let chosen = stream.get_ref().1.alpn_protocol();
        match (chosen, alpn) {
            (Some(ALPN), Alpn::Required | Alpn::Optional)
            | (Some(ALPN_WEB), Alpn::Web)
            | (None, Alpn::Optional | Alpn::Web) => Ok(stream),
            _ => Err(TlsError::NotCoap),
        }
    }
}

/// Accepts every certificate. The server still proves that it has the key of its own.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }
    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

impl TlsServer {
    /// Uses this chain of certificates (PEM), and its key (PEM).
    pub fn new(chain: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| TlsError::Pem("private key"))?;
        let builder = ServerConfig::builder_with_provider(provider());
        let builder = builder.with_safe_default_protocol_versions()?;
        let mut config =
            builder.with_no_client_auth().with_single_cert(certificates(chain)?, key)?;
        config.alpn_protocols = vec![ALPN.to_vec()];
        let stream = Arc::new(config.clone()).into();
        config.alpn_protocols = of_web();
        Ok(Self { stream, web: Arc::new(config).into() })
    }
    /// Performs the handshake with a client, of WebSockets or not.
    pub async fn accept<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
        websocket: bool,
    ) -> Result<server::TlsStream<S>, TlsError> {
        let acceptor = if websocket { &self.web } else { &self.stream };
        Ok(acceptor.accept(stream).await?)
    }
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match all {
        Ok(all) if !all.is_empty() => Ok(all),
        _ => Err(TlsError::Pem("certificate")),
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHAIN: &[u8] = include_bytes!("../tests/tls/server.pem");
    const KEY: &[u8] = include_bytes!("../tests/tls/server.key");
    const AUTHORITY: &[u8] = include_bytes!("../tests/tls/ca.pem");

    /// What a server and a client with these protocols agree on.
    async fn agreed(protocols: &[&[u8]], websocket: bool) -> Option<Option<Vec<u8>>> {
        let server = TlsServer::new(CHAIN, KEY).expect("the certificate of the tests");
        let mut roots = RootCertStore::empty();
        for authority in certificates(AUTHORITY).expect("that of the tests") {
            roots.add(authority).expect("an authority");
        }
        let builder = ClientConfig::builder_with_provider(provider());
        let builder = builder.with_safe_default_protocol_versions().expect("TLS");
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|one| one.to_vec()).collect();
        let client = TlsConnector::from(Arc::new(config));
        let (ours, theirs) = tokio::io::duplex(1 << 14);
        let name = ServerName::try_from("localhost").expect("a name");
        let (accepted, connected) =
            tokio::join!(server.accept(ours, websocket), client.connect(name, theirs));
        connected.ok()?;
        let accepted = accepted.expect("the client has connected");
        Some(accepted.get_ref().1.alpn_protocol().map(<[u8]>::to_vec))
    }

    #[tokio::test]
    async fn a_browser_opens_websockets_over_tls() {
        let browser: &[&[u8]] = &[b"h2", b"http/1.1"];
        assert_eq!(agreed(browser, true).await, Some(Some(ALPN_WEB.to_vec())));
        assert_eq!(agreed(&[], true).await, Some(None));
        assert_eq!(agreed(&[ALPN], true).await, Some(Some(ALPN.to_vec())));
        assert_eq!(agreed(browser, false).await, None, "that is no client of CoAP");
        assert_eq!(agreed(&[ALPN], false).await, Some(Some(ALPN.to_vec())));
    }
}
