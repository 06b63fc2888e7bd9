//! A request, put together and sent.

use std::future::IntoFuture;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use lowmesh_coap::RequestTemplate;
use lowmesh_coap::observe::REGISTER;
use lowmesh_wire::coap::uri::Uri;
use lowmesh_wire::coap::{Code, ContentFormat, OptionNumber};

use super::command::Operation;
use super::error::Error;
use super::exchange::Exchange;
use super::observation::{GroupObservation, Observation};
use super::response::Response;
use super::{Client, IntoUri, timely};

/// A request; awaiting it sends it.
#[derive(Debug)]
#[must_use = "a request leaves when it is awaited"]
pub struct Request<'c> {
    client: &'c Client,
    next_hop: Result<Uri, Error>,
    message: RequestTemplate,
    patience: Duration,
    addresses: Option<Vec<SocketAddr>>,
}

impl<'c> Request<'c> {
    pub(super) fn new(client: &'c Client, method: Code, uri: impl IntoUri) -> Self {
        let target = uri.into_uri();
        let mut message = RequestTemplate::new(method, "/");
        if let Ok(target) = &target {
            target.insert_into(&mut message.options);
        }
        let patience = client.0.settings.patience;
        Self { client, next_hop: target, message, patience, addresses: None }
    }
    /// The body, of any length.
    pub fn payload(mut self, payload: impl Into<Vec<u8>>) -> Self {
        self.message.payload = payload.into();
        self
    }
    /// The Content-Format of the payload.
    pub fn format(self, format: ContentFormat) -> Self {
        self.number(OptionNumber::CONTENT_FORMAT, format.0.into())
    }
    /// The accepted format of the response (Accept).
    pub fn accept(self, format: ContentFormat) -> Self {
        self.number(OptionNumber::ACCEPT, format.0.into())
    }
    /// Adds an option.
    pub fn option(mut self, number: OptionNumber, value: &[u8]) -> Self {
        self.message.options.insert(number, value);
        self
    }
    fn number(mut self, option: OptionNumber, value: u32) -> Self {
        self.message.options.set_uint(option, value);
        self
    }
    /// Sends the request as NON, without acknowledgement and retransmission.
    pub fn non_confirmable(mut self) -> Self {
        self.message.confirmable = false;
        self
    }
    /// The time to wait for the response.
    pub fn within(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }
    /// Sends the request through a forward proxy (RFC 7252 s5.7.2).
    pub fn via(mut self, proxy: impl IntoUri) -> Self {
        if let Ok(target) = &self.next_hop {
            // RFC 7252 s5.10.2: Proxy-Uri stands alone, without Uri-Host, Uri-Port, Uri-Path, Uri-Query.
            let whole = target.to_string();
            let options = &mut self.message.options;
            for part in [
                OptionNumber::URI_HOST,
                OptionNumber::URI_PORT,
                OptionNumber::URI_PATH,
                OptionNumber::URI_QUERY,
            ] {
                options.remove(part);
            }
            options.insert(OptionNumber::PROXY_URI, whole.as_bytes());
            self.next_hop = proxy.into_uri();
        }
        self
    }
    /// Sends to one of these addresses, whatever the host of the URI resolves to, for a caller that has checked them.
    pub(crate) fn at(self, addresses: Vec<SocketAddr>) -> Self {
        Self { addresses: Some(addresses), ..self }
    }
    /// As it is, with all options: for what has no method of its own here.
    pub fn template(mut self, message: RequestTemplate) -> Self {
        self.message = message;
        self
    }

    /// Sends the request and returns the response with any code. The same as awaiting the request.
    pub async fn send(self) -> Result<Response, Error> {
        let patience = self.patience;
        let mut exchange = self.exchange(Operation::Request).await?;
        exchange.answer_within(patience).await?.ok_or(Error::Unwanted)
    }
    /// Sends the request to a group and returns the responses that arrive within `wait` (RFC 7252 s8.2); no response is
    /// an error.
    pub async fn gather(self, wait: Duration) -> Result<Vec<Response>, Error> {
        let mut exchange = self.begin_group(wait).await?;
        let mut answers = Vec::new();
        while let Some(item) = exchange.next().await {
            answers.extend(Response::of(item?));
        }
        Ok(answers)
    }
    /// Sends the request to a group; each response is a `GroupResponse` of the exchange, and `Over` follows after
    /// `wait`.
    pub async fn begin_group(self, wait: Duration) -> Result<Exchange, Error> {
        self.exchange(|message| Operation::Group(message, wait)).await
    }
    /// Sends the request and returns its events step by step.
    pub async fn begin(self) -> Result<Exchange, Error> {
        self.exchange(Operation::Request).await
    }
    /// Registers as an observer (RFC 7641), with GET or FETCH, and waits for the first state.
    pub async fn observe(self) -> Result<Observation, Error> {
        let patience = self.patience;
        let request = self.number(OptionNumber::OBSERVE, REGISTER);
        Observation::begin(request.exchange(Operation::Request).await?, patience).await
    }
    /// Registers as an observer of all members of a group, with GET or FETCH; their first states are taken for `wait` (RFC
    /// 10020 s3.7).
    pub async fn observe_group(self, wait: Duration) -> Result<GroupObservation, Error> {
        let request = self.number(OptionNumber::OBSERVE, REGISTER);
        Ok(GroupObservation::new(request.begin_group(wait).await?))
    }

    async fn exchange(
        self,
        operation: impl FnOnce(RequestTemplate) -> Operation,
    ) -> Result<Exchange, Error> {
        let next_hop = self.next_hop?;
        let patience = self.patience;
        let begun = self.client.begin(&next_hop, self.addresses, operation(self.message));
        timely(&next_hop, patience, begun).await
    }
}

impl<'c> IntoFuture for Request<'c> {
    type Output = Result<Response, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'c>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}
