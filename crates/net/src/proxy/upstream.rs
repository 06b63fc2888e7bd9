//! Whom a proxy asks: origins over every transport, as a client of theirs.

use lowmesh_coap::proxy::failure;
use lowmesh_coap::{Output, RequestTemplate};
use lowmesh_wire::coap::uri::Uri;
use lowmesh_wire::coap::{Code, Message, OptionNumber};

use super::limits::{ProxyError, ProxyLimits};
use crate::client::{Builder, Client, Error, Exchange};
use crate::line::ConnectError;
use crate::metrics::{Kind, Report};
use crate::params::HANDSHAKE_MAX;

/// The way to all origins.
#[derive(Clone, Debug)]
pub(super) struct Upstream {
    builder: Builder,
    client: Client,
}

impl Upstream {
    pub(super) fn open(limits: ProxyLimits) -> Result<Self, ProxyError> {
        let ProxyLimits { mut datagrams, mut connection, host, connections_max, tls, .. } = limits;
        // RFC 8613 s2: the option is safe to forward, whatever it protects.
        datagrams.extensions.push(OptionNumber::OSCORE);
        connection.extensions.push(OptionNumber::OSCORE);
        let builder = Client::builder()
            .datagrams(datagrams)
            .connection(connection)
            .limits(host)
            .connections_max(connections_max);
        Self::build(match tls {
            Some(authorities) => builder.trust(authorities),
            None => builder,
        })
    }
    /// The same with a key for DTLS.
    pub(super) fn with_key(self, identity: &[u8], key: &[u8]) -> Result<Self, ProxyError> {
        Self::build(self.builder.key(identity, key))
    }
    fn build(builder: Builder) -> Result<Self, ProxyError> {
        let client = builder.clone().build()?;
        Ok(Self { builder, client })
    }
    /// The origin's response, or the code that the client gets instead.
    pub(super) async fn ask(
        &self,
        target: &Uri,
        request: RequestTemplate,
    ) -> Result<Message, Code> {
        let mut exchange = self.begin(target, request).await?;
        while let Some(item) = exchange.next().await {
            match item {
                Ok(Output::Response { message, .. }) => return Ok(message),
                // RFC 7252 s5.9.3.5: no timely response.
                Ok(Output::Over { .. }) => return Err(Code::GATEWAY_TIMEOUT),
                Ok(_) => {}
                Err(error) => return Err(instead(&error)),
            }
        }
        Err(Code::BAD_GATEWAY)
    }
    /// A request on its way, step by step.
    pub(super) async fn begin(
        &self,
        target: &Uri,
        request: RequestTemplate,
    ) -> Result<Exchange, Code> {
        let asked = self.client.request(request.code, target).template(request);
        asked.within(HANDSHAKE_MAX).begin().await.map_err(|error| instead(&error))
    }
    /// How its ways over datagrams stand.
    pub(super) async fn reports(&self) -> Vec<Report> {
        let mut reports = self.client.reports().await;
        // The connections are counted that clients of the proxy have.
        reports.retain(|report| report.kind != Kind::Connection);
        for report in &mut reports {
            if let Kind::Endpoint { name, .. } = &mut report.kind {
                name.insert_str(0, "upstream ");
            }
        }
        reports
    }
}

/// What a client of the proxy hears when the origin has given no response.
pub(super) fn instead(error: &Error) -> Code {
    match error {
        // RFC 7252 s5.10.2: what this proxy cannot speak; a group's answers are many, and its client can take one.
        Error::NoKey
        | Error::Group(_)
        | Error::Connect(ConnectError::NoTrust(_) | ConnectError::Group(_)) => {
            Code::PROXYING_NOT_SUPPORTED
        }
        // RFC 7252 s5.9.3.4: the proxy cannot serve it now.
        Error::Rejected(_) | Error::Crowded(_) => Code::SERVICE_UNAVAILABLE,
        Error::Silence { .. } => Code::GATEWAY_TIMEOUT,
        Error::Failed { reason, .. } => failure(*reason),
        // RFC 7252 s5.9.3.3: the next hop cannot be reached, or is no good.
        _ => Code::BAD_GATEWAY,
    }
}
