//! A client's side of one request whose bodies may need blocks (RFC 7959 s2.4 to s2.10, s3.3).
//!
//! ```text
//!   Uploading ── 2.31 ──> Uploading ── last block answered ──┐
//!      └────── whole request in one message ─────────────────┴─> answered whole: Done
//!                                      first block of a body ──> Downloading ── last: Done
//! ```

use alloc::vec::Vec;

use lowmesh_wire::coap::{Class, Code, Message, OptionNumber, Options};

use super::block::{Block, Exponent};
use crate::event::RequestTemplate;
use crate::params::{
    ECHO_OPTION_MAX, HEADER_MAX, MAX_AGE_DEFAULT, MESSAGE_OVERHEAD, TRANSFER_RESTARTS_MAX,
};

/// The limits of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest blocks.
    pub exponent: Exponent,
    /// Octets of payload in one message; counts for [`Exponent::BERT`] alone.
    pub payload_max: usize,
    /// The longest body of a response that is put together, octets.
    pub body_max: usize,
    /// The request says the size of the response's blocks (RFC 7959 s2.4, early negotiation).
    pub negotiates: bool,
}

impl Limits {
    /// Octets of body that leave in one message.
    fn chunk(&self, exponent: Exponent) -> usize {
        let size = exponent.size();
        if exponent.is_bert() { (self.payload_max / size).max(1) * size } else { size }
    }
}

/// Octets of payload that a message with OSCORE may have beyond one block.
///
/// Its payload is the ciphertext of an inner block, inner options and the authentication tag (RFC 8613 s5.3), which is longer
/// than the block. The proxy received it in one datagram. Outer blocks would need two, and some servers decrypt before they
/// reassemble outer blocks. `overhead` counts the octets beside the payload, with those of options that are added later.
pub(crate) fn protected_surplus(options: &Options, overhead: usize) -> usize {
    let protected = options.get(OptionNumber::OSCORE).is_some();
    if protected { MESSAGE_OVERHEAD.saturating_sub(overhead) } else { 0 }
}

/// The result of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The next request, of [`Transfer::request`], has to be sent.
    Ask,
    /// The response, whole.
    Done(Message),
    /// It cannot go on.
    Failed(TransferError),
}

/// Why a transfer cannot continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransferError {
    /// The server's block option is not what was asked for, or its block has a wrong size.
    #[error("the server sent another block than the requested one")]
    WrongBlock,
    /// The body of the response is longer than the client takes.
    #[error("the body of the response is longer than the limit")]
    TooLarge,
    /// The resource changed again and again while its body was read.
    #[error("the resource keeps changing faster than its body can be read")]
    KeepsChanging,
    /// The server has taken the first block of the request for the whole, and says nothing of the others.
    #[error("the server took a part of the body and reported success: it does not know Block1")]
    PartlyTaken,
    /// The body of the request has more blocks than there are numbers for.
    #[error("the body of the request is too long for blocks of this size")]
    TooManyBlocks,
}

#[derive(Debug)]
enum Phase {
    /// The request's body is on its way: `offset` octets of it are there, and those before `end` have left. `sent` is their
    /// Block1 option.
    Uploading { offset: usize, end: usize, exponent: Exponent, sent: Option<Block> },
    /// The response's body is on its way.
    Downloading { first: Message, body: Vec<u8>, exponent: Exponent },
}

impl Phase {
    /// Nothing has left.
    const fn start(exponent: Exponent) -> Self {
        Self::Uploading { offset: 0, end: 0, exponent, sent: None }
    }
}

/// Whether a request may say the size of its response's blocks: what reads, unless the application says it.
fn negotiates(message: &RequestTemplate) -> bool {
    matches!(message.code, Code::GET | Code::FETCH | Code::POST)
        && message.options.get(OptionNumber::BLOCK2).is_none()
}

/// One request and its response, in any number of messages.
#[derive(Debug)]
pub struct Transfer {
    request: RequestTemplate,
    limits: Limits,
    phase: Phase,
    /// The newest Echo value of the server (RFC 9175 s2.3).
    echo: Option<Vec<u8>>,
    /// 4.01 with Echo has been answered once; a second one is for the application.
    echoed: bool,
    restarts: u8,
    /// What becomes the Request-Tag once the body needs blocks.
    tag: Vec<u8>,
    /// The 4.13 to a request without Block1.
    hint: Option<Message>,
    /// The request cannot be made again from the start.
    once: bool,
    /// Observe of the first block, if that came with a notification.
    observe: Option<Vec<u8>>,
}

impl Transfer {
    /// A transfer of `request`, whose payload is its whole body.
    ///
    /// `tag` becomes its Request-Tag if the body needs blocks: it tells bodies apart that are under
    /// way at the same time (RFC 9175 s3.4), so no other transfer to the server may have it now.
    pub fn new(request: RequestTemplate, limits: Limits, tag: &[u8]) -> Self {
        let mut limits = limits;
        limits.body_max = request.body_max.unwrap_or(limits.body_max).min(limits.body_max);
        let phase = Phase::start(limits.exponent);
        let (echo, echoed, restarts, hint, once, observe) = (None, false, 0, None, false, None);
        let tag = tag.to_vec();
        let mut transfer =
            Self { request, limits, phase, echo, echoed, restarts, tag, hint, once, observe };
        if transfer.is_cut() {
            transfer.tag_body();
        }
        transfer
    }
    /// Octets of body that leave without blocks.
    fn whole_max(&self, exponent: Exponent) -> usize {
        let chunk = self.limits.chunk(exponent);
        // After the hint of 4.13 the server wants blocks, and BERT fills its messages.
        if self.hint.is_some() || exponent.is_bert() {
            return chunk;
        }
        let options = &self.request.options;
        let overhead = HEADER_MAX + options.as_bytes().len() + ECHO_OPTION_MAX;
        chunk + protected_surplus(options, overhead)
    }
    /// Whether the body of the request leaves in more than one message.
    pub fn is_cut(&self) -> bool {
        self.request.payload.len() > self.whole_max(self.limits.exponent)
    }
    /// The body needs blocks.
    fn tag_body(&mut self) {
        if self.request.options.get(OptionNumber::REQUEST_TAG).is_none() {
            self.request.options.insert(OptionNumber::REQUEST_TAG, &self.tag);
        }
    }
    /// What the peer takes may have become known since the last message, as by a CSM: the next blocks of the request are
    /// no larger.
    pub fn limit(&mut self, exponent: Exponent, payload_max: usize) {
        let Phase::Uploading { exponent: blocks, .. } = &mut self.phase else { return };
        *blocks = (*blocks).min(exponent);
        self.limits.payload_max = payload_max;
        let blocks = *blocks;
        if self.request.payload.len() > self.whole_max(blocks) {
            self.tag_body();
        }
    }
    /// A transfer that goes on from a first block that has come already: a notification, or the
    /// answer of a member of a group.
    pub fn resume(request: RequestTemplate, limits: Limits, first: Message) -> (Self, Progress) {
        Self::new(request, limits, &[]).go_on(first)
    }
    /// The same for a request whose octets must not leave a second time, since they are protected against replay: if its
    /// blocks do not fit together, the transfer fails.
    pub fn resume_once(
        request: RequestTemplate,
        limits: Limits,
        first: Message,
    ) -> (Self, Progress) {
        Self { once: true, ..Self::new(request, limits, &[]) }.go_on(first)
    }
    fn go_on(self, first: Message) -> (Self, Progress) {
        let mut transfer = self;
        // Only the representation is asked for, not its observation (RFC 7959 s3.4).
        transfer.request.options.remove(OptionNumber::OBSERVE);
        transfer.request.token = None;
        transfer.observe = first.options.get(OptionNumber::OBSERVE).map(<[u8]>::to_vec);
        let progress = transfer.on_response(first);
        (transfer, progress)
    }
    /// Octets of the response that have come so far.
    pub const fn received(&self) -> usize {
        match &self.phase {
            Phase::Uploading { .. } => 0,
            Phase::Downloading { body, .. } => body.len(),
        }
    }
    /// The request as the application made it.
    pub const fn whole_request(&self) -> &RequestTemplate {
        &self.request
    }
    /// The request to send now.
    pub fn request(&mut self) -> Result<RequestTemplate, TransferError> {
        let whole_max = match &self.phase {
            Phase::Uploading { offset: 0, exponent, .. } => self.whole_max(*exponent),
            _ => 0,
        };
        let mut message = RequestTemplate {
            code: self.request.code,
            confirmable: self.request.confirmable,
            options: self.request.options.clone(),
            payload: Vec::new(),
            token: None,
            body_max: self.request.body_max,
        };
        match &mut self.phase {
            Phase::Uploading { offset, end: left, exponent, sent } => {
                message.token.clone_from(&self.request.token);
                let body = &self.request.payload;
                let chunk = self.limits.chunk(*exponent);
                let end = if body.len() <= whole_max {
                    body.len()
                } else {
                    body.len().min(*offset + chunk)
                };
                let more = end < body.len();
                *sent = None;
                if *offset > 0 || more {
                    let block = Block::at(*offset, more, *exponent);
                    let block = block.ok_or(TransferError::TooManyBlocks)?;
                    block.write(&mut message.options, OptionNumber::BLOCK1);
                    if *offset == 0 {
                        // RFC 7959 s4: how long the whole is.
                        message.options.set_uint(OptionNumber::SIZE1, body.len() as u32);
                    }
                    *sent = Some(block);
                }
                *left = end;
                message.payload = body[*offset..end].to_vec();
                if self.limits.negotiates && !more && negotiates(&message) {
                    let block = Block { number: 0, more: false, exponent: self.limits.exponent };
                    block.write(&mut message.options, OptionNumber::BLOCK2);
                }
            }
            Phase::Downloading { body, exponent, .. } => {
                let block = Block::at(body.len(), false, *exponent);
                let block = block.ok_or(TransferError::TooManyBlocks)?;
                // What selects the first block only, or was the request's own.
                message.options.remove(OptionNumber::OBSERVE);
                message.options.remove(OptionNumber::ETAG);
                block.write(&mut message.options, OptionNumber::BLOCK2);
            }
        }
        if let Some(echo) = &self.echo {
            message.options.set(OptionNumber::ECHO, echo);
        }
        Ok(message)
    }
    /// A response to the request that was sent last.
    pub fn on_response(&mut self, response: Message) -> Progress {
        let mut progress = self.proceed(response);
        if let (Progress::Done(whole), Some(observe)) = (&mut progress, &self.observe)
            && whole.code.class() == Class::Success
        {
            // The rest of a notification, which may have been asked for from the start again, belongs to it.
            whole.options.set(OptionNumber::OBSERVE, observe);
        }
        progress
    }
    fn proceed(&mut self, response: Message) -> Progress {
        let fresh_echo = self.take_echo(&response);
        if response.code == Code::UNAUTHORIZED && fresh_echo && !self.echoed {
            // RFC 9175 s2.3: the same request again, with the value.
            self.echoed = true;
            return Progress::Ask;
        }
        match &self.phase {
            Phase::Uploading { .. } => self.on_upload_response(response, fresh_echo),
            Phase::Downloading { .. } => self.on_block(response),
        }
    }

    /// Remembers the Echo option of a response; true if it has one.
    fn take_echo(&mut self, response: &Message) -> bool {
        let Some(value) = response.options.get(OptionNumber::ECHO) else { return false };
        self.echo = Some(value.to_vec());
        true
    }

    fn on_upload_response(&mut self, response: Message, fresh_echo: bool) -> Progress {
        let Phase::Uploading { offset, end, exponent, sent } = &mut self.phase else {
            return Progress::Failed(TransferError::WrongBlock);
        };
        let Ok(answered) = Block::read(response.options.iter(), OptionNumber::BLOCK1) else {
            return Progress::Failed(TransferError::WrongBlock);
        };
        let whole = !sent.is_some_and(|sent| sent.more);
        let too_large = response.code == Code::REQUEST_ENTITY_TOO_LARGE;
        match (*sent, answered) {
            (None, answered) if too_large => return self.on_hint(response, answered),
            (Some(sent), Some(answered)) => {
                if too_large && sent.number == 0 && answered.exponent < *exponent {
                    // RFC 7959 s2.9.3: the server wants smaller blocks from the start.
                    *exponent = answered.exponent;
                    return Progress::Ask;
                }
                if !whole && response.code.class() == Class::Success {
                    if answered.number != sent.number {
                        return Progress::Failed(TransferError::WrongBlock);
                    }
                    // RFC 7959 s2.3: the next block begins where this one ended, in the size that the
                    // server prefers.
                    *offset = *end;
                    *exponent = (*exponent).min(answered.exponent);
                    return Progress::Ask;
                }
            }
            // RFC 7959 s2.3: each of these responses has Block1. Without it the server has not seen that more follows.
            (Some(_), None)
                if !whole
                    && response.code.class() == Class::Success
                    && response.code != Code::CONTINUE =>
            {
                return Progress::Failed(TransferError::PartlyTaken);
            }
            // The server knows no Block1: what it said of the whole request counts.
            (Some(_), None) if response.code == Code::BAD_OPTION && self.hint.is_some() => {
                return Progress::Done(self.hint.take().unwrap_or(response));
            }
            _ => {}
        }
        if response.code == Code::CONTINUE {
            return Progress::Failed(TransferError::WrongBlock);
        }
        self.on_first_block(response, fresh_echo)
    }

    /// RFC 7959 s2.9.3: 4.13 to a request without Block1 is a hint to send its body in blocks, of the size in the
    /// response's Block1. Without a size each try is with half of it.
    fn on_hint(&mut self, response: Message, answered: Option<Block>) -> Progress {
        let len = self.request.payload.len();
        // RFC 7959 s4: Size1 says how long a body may be, in whatever number of messages.
        let max = response.options.get_uint(OptionNumber::SIZE1);
        let fits = max.is_none_or(|max| len <= max as usize);
        let half = Exponent::fitting(len.saturating_sub(1));
        let wanted = answered.map_or(half, |block| block.exponent).min(self.limits.exponent);
        if !fits || wanted.size() >= len {
            return Progress::Done(response);
        }
        self.tag_body();
        self.phase = Phase::start(wanted);
        self.hint = Some(response);
        Progress::Ask
    }

    /// The response to the whole request, or its first block.
    fn on_first_block(&mut self, response: Message, fresh_echo: bool) -> Progress {
        let asked = self.request.options.iter();
        let asked = Block::read(asked, OptionNumber::BLOCK2).ok().flatten();
        let block = match Block::read(response.options.iter(), OptionNumber::BLOCK2) {
            Ok(Some(block)) if block.more => block,
            Ok(_) => {
                let mut response = response;
                if asked.is_none() {
                    response.options.remove(OptionNumber::BLOCK2);
                }
                return Progress::Done(response);
            }
            Err(_) => return Progress::Failed(TransferError::WrongBlock),
        };
        // The application asked for one later block: it gets that and no other.
        if asked.is_some_and(|asked| asked.number > 0) {
            return Progress::Done(response);
        }
        let larger = block.exponent < self.limits.exponent;
        if fresh_echo && !self.echoed && self.may_repeat() && larger {
            // A server that does not trust our address yet sends small blocks and an Echo value:
            // with the value in the request the same body may come in large ones.
            self.echoed = true;
            return Progress::Ask;
        }
        if block.number != 0 || !block.admits(response.payload.len()) {
            return Progress::Failed(TransferError::WrongBlock);
        }
        let announced = response.options.get_uint(OptionNumber::SIZE2).unwrap_or(0);
        if announced as usize > self.limits.body_max {
            return Progress::Failed(TransferError::TooLarge);
        }
        let mut first = response;
        let body = core::mem::take(&mut first.payload);
        let exponent = block.exponent.min(self.limits.exponent);
        self.phase = Phase::Downloading { first, body, exponent };
        Progress::Ask
    }

    fn on_block(&mut self, response: Message) -> Progress {
        let Phase::Downloading { first, body, exponent } = &mut self.phase else {
            return Progress::Failed(TransferError::WrongBlock);
        };
        if response.code.class() != Class::Success {
            return Progress::Done(response);
        }
        let block = Block::read(response.options.iter(), OptionNumber::BLOCK2).ok().flatten();
        let Some(block) = block else { return Progress::Failed(TransferError::WrongBlock) };
        let tag = OptionNumber::ETAG;
        if response.options.get(tag) != first.options.get(tag) || response.code != first.code {
            // RFC 7959 s2.4: blocks with different tags MUST NOT be put together.
            return self.restart();
        }
        if block.offset() != body.len() || !block.admits(response.payload.len()) {
            return Progress::Failed(TransferError::WrongBlock);
        }
        if body.len() + response.payload.len() > self.limits.body_max {
            return Progress::Failed(TransferError::TooLarge);
        }
        let said = |seconds: Option<u32>| seconds.map_or(MAX_AGE_DEFAULT.as_secs(), u64::from);
        // RFC 7252 s5.10.5: the body is fresh as long as all of its blocks are.
        let max_age = OptionNumber::MAX_AGE;
        if let Some(left) = response.options.get_uint(max_age)
            && u64::from(left) < said(first.options.get_uint(max_age))
        {
            first.options.set_uint(max_age, left);
        }
        body.extend_from_slice(&response.payload);
        if block.more {
            *exponent = (*exponent).min(block.exponent);
            return Progress::Ask;
        }
        let mut whole = first.clone();
        whole.payload = core::mem::take(body);
        whole.options.remove(OptionNumber::BLOCK2);
        Progress::Done(whole)
    }

    /// Whether the request may leave again from the start.
    fn may_repeat(&self) -> bool {
        !self.once && matches!(self.request.code, Code::GET | Code::FETCH)
    }

    /// The resource changed while its body was read: the transfer begins from the start.
    fn restart(&mut self) -> Progress {
        self.restarts += 1;
        if !self.may_repeat() || self.restarts > TRANSFER_RESTARTS_MAX {
            return Progress::Failed(TransferError::KeepsChanging);
        }
        self.phase = Phase::start(self.limits.exponent);
        Progress::Ask
    }
}

#[cfg(test)]
mod tests;
