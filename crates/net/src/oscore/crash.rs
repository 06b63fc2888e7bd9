//! The one property that everything here is for: no (key, nonce) pair protects two plaintexts, whatever fails and
//! whenever it crashes (RFC 8613 s7.2).

mod groups;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use lowmesh_oscore::{Configuration, Header, PartialIv, Pending, ProtectError, Received, Refusal};
use lowmesh_wire::coap::stream::{Framing, StreamMessage};
use lowmesh_wire::coap::{Code, OptionNumber};
use proptest::prelude::*;
use zeroize::Zeroizing;

use super::store::{Store, StoreError};
use super::stored::{AfterLoss, StoredContext};
use crate::clock::fresh_octets;
use lowmesh_oscore::transport::Answer;

/// The step that a save does not come to.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// Nothing is written.
    Write,
    /// The new file is written, and not renamed.
    Rename,
    /// The file is renamed, and its folder not synced.
    FolderSync,
}

/// What a disk holds.
#[derive(Debug, Default)]
struct Disk {
    /// What a loss of power leaves.
    durable: Option<String>,
    /// What programs see.
    visible: Option<String>,
    /// Faults of the next saves.
    faults: Vec<Fault>,
}

#[derive(Clone, Debug, Default)]
struct FaultyStore(Arc<Mutex<Disk>>);

impl FaultyStore {
    fn disk<R>(&self, change: impl FnOnce(&mut Disk) -> R) -> R {
        change(&mut self.0.lock().expect("no test panics with it"))
    }
}

impl Store for FaultyStore {
    fn place(&self) -> &Path {
        Path::new("a disk in memory")
    }
    fn load(&self) -> io::Result<Option<String>> {
        Ok(self.disk(|disk| disk.visible.clone()))
    }
    fn save(&mut self, text: &str) -> io::Result<()> {
        self.disk(|disk| {
            let fault = disk.faults.pop();
            if !matches!(fault, Some(Fault::Write | Fault::Rename)) {
                disk.visible = Some(text.to_owned());
            }
            if fault.is_some() {
                return Err(io::ErrorKind::StorageFull.into());
            }
            disk.durable.clone_from(&disk.visible);
            Ok(())
        })
    }
}

/// How an endpoint ends.
#[derive(Clone, Copy, Debug)]
enum End {
    /// What programs saw is there after it.
    Killed,
    /// What was not synced is not.
    PowerLost,
    /// It closes its context, which may fail.
    Orderly,
}

/// One thing that happens; `Left` and `Right` do the same, each as a client and as a server.
#[derive(Clone, Debug)]
enum Step {
    Request {
        side: usize,
        observes: bool,
    },
    /// A request, perhaps one of long ago, arrives at the other side.
    Arrive {
        side: usize,
        request: usize,
    },
    /// One of the requests that were taken is answered, perhaps again.
    Respond {
        side: usize,
        received: usize,
    },
    /// A response arrives, perhaps one of long ago; a challenge is answered with its Echo.
    Answered {
        side: usize,
        response: usize,
    },
    Fail {
        side: usize,
        faults: Vec<Fault>,
    },
    Restart {
        side: usize,
        end: End,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let side = || 0_usize..2;
    let fault = prop_oneof![Just(Fault::Write), Just(Fault::Rename), Just(Fault::FolderSync)];
    let end = prop_oneof![Just(End::Killed), Just(End::PowerLost), Just(End::Orderly)];
    let step = prop_oneof![
        6 => (side(), any::<bool>()).prop_map(|(side, observes)| Step::Request { side, observes }),
        8 => (side(), 0_usize..8).prop_map(|(side, request)| Step::Arrive { side, request }),
        8 => (side(), 0_usize..8).prop_map(|(side, received)| Step::Respond { side, received }),
        4 => (side(), 0_usize..8).prop_map(|(side, response)| Step::Answered { side, response }),
        2 => (side(), prop::collection::vec(fault, 1..4))
            .prop_map(|(side, faults)| Step::Fail { side, faults }),
        2 => (side(), end).prop_map(|(side, end)| Step::Restart { side, end }),
    ];
    prop::collection::vec(step, 1..120)
}

/// An endpoint, its disk and what it keeps in memory only.
struct Side {
    configuration: Configuration,
    after_loss: AfterLoss,
    store: FaultyStore,
    context: Option<StoredContext>,
    pending: BTreeMap<usize, Pending>,
    received: Vec<Received>,
}

impl Side {
    fn new(ours: &str, theirs: &str, settings: &str, after_loss: AfterLoss) -> Self {
        let text = format!(
            "master_secret,ascii,0123456789abcdef\nsender_id,ascii,{ours}\n\
             recipient_id,ascii,{theirs}\n{settings}"
        );
        let configuration = Configuration::parse(&text).expect("our own");
        let (store, context) = (FaultyStore::default(), None);
        let (pending, received) = (BTreeMap::new(), Vec::new());
        Self { configuration, after_loss, store, context, pending, received }
    }
    /// The context, which the endpoint opens if it can.
    fn context(&mut self) -> Option<&mut StoredContext> {
        if self.context.is_none() {
            let store = Box::new(self.store.clone());
            let opened = if self.configuration.derives_many_times() {
                let key = || fresh_octets().map(Zeroizing::new);
                let renewal = self.configuration.renewals(key).expect("a system").remove(0);
                StoredContext::renewable(renewal, store, self.after_loss)
            } else {
                let context = self.configuration.contexts().remove(0);
                StoredContext::resume(context, store, self.after_loss)
            };
            self.context = opened.ok();
        }
        self.context.as_mut()
    }
    fn end(&mut self, end: End) {
        let context = self.context.take();
        if let (End::Orderly, Some(context)) = (end, context) {
            let _it_may_fail = context.close();
        }
        self.pending.clear();
        self.received.clear();
        self.store.disk(|disk| {
            if matches!(end, End::PowerLost) {
                disk.visible.clone_from(&disk.durable);
            }
        });
    }
}

/// The ID Context of a key, whose key it is, and who drew which number: the latter two make a nonce.
type Nonce = (Id, usize, usize, PartialIv);
type Id = Option<Vec<u8>>;

/// A request on the wire.
#[derive(Clone)]
struct Sent {
    side: usize,
    id: Id,
    plain: StreamMessage,
    outer: StreamMessage,
}

/// All that was ever on the wire.
#[derive(Default)]
struct Wire {
    requests: Vec<Sent>,
    /// The responses, and the requests that they answer.
    responses: Vec<(usize, usize, StreamMessage)>,
    sealed: BTreeMap<Nonce, Vec<u8>>,
}

impl Wire {
    /// A message leaves. Two plaintexts under one key and nonce give two ciphertexts.
    fn leaves(&mut self, nonce: &Nonce, message: &StreamMessage) -> Result<(), TestCaseError> {
        let mut inside = StreamMessage::new(Code::POST);
        inside.payload.clone_from(&message.payload);
        let mut octets = Vec::new();
        inside.emit(Framing::WebSocket, &mut octets);
        let before = self.sealed.insert(nonce.clone(), octets.clone());
        prop_assert!(
            before.is_none_or(|before| before == octets),
            "{nonce:?} protects two plaintexts"
        );
        Ok(())
    }
    fn request(&mut self, sent: Sent) -> Result<usize, TestCaseError> {
        let piv = header(&sent.outer).0.expect("a request says it");
        self.leaves(&(sent.id.clone(), sent.side, sent.side, piv), &sent.outer)?;
        self.requests.push(sent);
        Ok(self.requests.len() - 1)
    }
    fn response(
        &mut self,
        side: usize,
        request: usize,
        message: StreamMessage,
    ) -> Result<(), TestCaseError> {
        let Sent { side: client, id, outer, .. } = &self.requests[request];
        let (own, r2) = header(&message);
        // A response #1 is under R2 || ID1; the wrapper of R2 stays on here.
        let id = match r2 {
            Some(r2) => Some([&r2[..], id.as_deref().unwrap_or_default()].concat()),
            None => id.clone(),
        };
        let nonce = match own {
            Some(own) => (id, side, side, own),
            None => (id, side, *client, header(outer).0.expect("a request says it")),
        };
        self.leaves(&nonce, &message)?;
        self.responses.push((side, request, message));
        Ok(())
    }
    /// The number of a request from the other side: the latest is 0.
    fn request_to(&self, side: usize, back: usize) -> Option<usize> {
        let to = |(_, sent): &(usize, &Sent)| sent.side != side;
        self.requests.iter().enumerate().rev().filter(to).nth(back).map(|(place, _)| place)
    }
}

/// The Partial IV and the kid context.
fn header(message: &StreamMessage) -> (Option<PartialIv>, Id) {
    let value = message.options.get(OptionNumber::OSCORE).expect("protected");
    let header = Header::parse(value).expect("our own");
    (header.partial_iv, header.kid_context.map(<[u8]>::to_vec))
}

/// A message that no other is like.
fn plain(code: Code, counter: &mut u64) -> StreamMessage {
    *counter += 1;
    let mut message = StreamMessage::new(code);
    message.payload = counter.to_be_bytes().to_vec();
    message
}

fn play(sides: &mut [Side; 2], steps: Vec<Step>) -> Result<(), TestCaseError> {
    let (mut wire, mut counter) = (Wire::default(), 0);
    // Which request each of the received ones is.
    let mut taken: [Vec<usize>; 2] = [Vec::new(), Vec::new()];
    for step in steps {
        match step {
            Step::Request { side, observes } => {
                let mut request = plain(Code::FETCH, &mut counter);
                if observes {
                    request.options.insert_uint(OptionNumber::OBSERVE, 0);
                }
                ask(&mut sides[side], side, &request, &mut wire)?;
            }
            Step::Arrive { side, request } => {
                if let Some(place) = wire.request_to(side, request)
                    && let Some(received) = arrive(&mut sides[side], side, place, &mut wire)?
                {
                    sides[side].received.push(received);
                    taken[side].push(place);
                }
            }
            Step::Respond { side, received } => {
                let mut response = plain(Code::CONTENT, &mut counter);
                response.options.insert_uint(OptionNumber::OBSERVE, 1);
                let Side { received: all, context: Some(context), .. } = &mut sides[side] else {
                    continue;
                };
                let Some(place) = all.len().checked_sub(received + 1) else { continue };
                match context.protect_response(&mut all[place], &response) {
                    Ok(outer) => wire.response(side, taken[side][place], outer)?,
                    Err(StoreError::File { .. } | StoreError::Protect(ProtectError::Replaced)) => {}
                    Err(other) => return Err(TestCaseError::fail(other.to_string())),
                }
            }
            Step::Answered { side, response } => {
                let to = |(from, _, _): &&(usize, usize, StreamMessage)| *from != side;
                let found = wire.responses.iter().rev().filter(to).nth(response).cloned();
                let Some((_, request, outer)) = found else { continue };
                let Side { pending, context: Some(context), .. } = &mut sides[side] else {
                    continue;
                };
                let Some(pending) = pending.get_mut(&request) else { continue };
                let answer = context.unprotect_response(pending, &outer);
                let opened = match answer {
                    Ok(Ok(Answer::Response(opened))) => opened,
                    Ok(Ok(Answer::Again)) => {
                        let again = wire.requests[request].plain.clone();
                        ask(&mut sides[side], side, &again, &mut wire)?;
                        continue;
                    }
                    _ => continue,
                };
                if let Some(echo) = opened.options.get(OptionNumber::ECHO) {
                    let mut again = plain(Code::FETCH, &mut counter);
                    again.options.insert(OptionNumber::ECHO, echo);
                    ask(&mut sides[side], side, &again, &mut wire)?;
                }
            }
            Step::Fail { side, faults } => sides[side].store.disk(|disk| disk.faults = faults),
            Step::Restart { side, end } => {
                sides[side].end(end);
                taken[side].clear();
            }
        }
    }
    recovers(sides, &mut wire, &mut counter)
}

/// A request arrives at a server; what its responses need, if it is taken.
fn arrive(
    server: &mut Side,
    side: usize,
    request: usize,
    wire: &mut Wire,
) -> Result<Option<Received>, TestCaseError> {
    let Some(context) = server.context() else { return Ok(None) };
    match context.unprotect_request(&wire.requests[request].outer) {
        Ok(Ok((_, received))) => Ok(Some(received)),
        Ok(Err(Refusal::Challenged(response) | Refusal::Renewing(response))) => {
            wire.response(side, request, *response)?;
            Ok(None)
        }
        Ok(Err(_)) | Err(StoreError::File { .. }) => Ok(None),
        Err(other) => Err(TestCaseError::fail(other.to_string())),
    }
}

fn ask(
    client: &mut Side,
    side: usize,
    request: &StreamMessage,
    wire: &mut Wire,
) -> Result<(), TestCaseError> {
    let Some(context) = client.context() else { return Ok(()) };
    match context.protect_request(request) {
        Ok((outer, pending)) => {
            let id = pending.id_context().map(<[u8]>::to_vec);
            let place = wire.request(Sent { side, id, plain: request.clone(), outer })?;
            client.pending.insert(place, pending);
            Ok(())
        }
        Err(StoreError::File { .. }) => Ok(()),
        Err(other) => Err(TestCaseError::fail(other.to_string())),
    }
}

/// When the disks work again so do the endpoints.
fn recovers(
    sides: &mut [Side; 2],
    wire: &mut Wire,
    counter: &mut u64,
) -> Result<(), TestCaseError> {
    for (side, one) in sides.iter_mut().enumerate() {
        one.store.disk(|disk| disk.faults.clear());
        let sent = wire.requests.len();
        ask(one, side, &plain(Code::FETCH, counter), wire)?;
        prop_assert_eq!(wire.requests.len(), sent + 1, "a disk that works is not enough");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]
    #[test]
    fn no_key_and_nonce_protect_two_plaintexts_whatever_fails(
        steps in steps(),
        frequency in 1_u32..6,
        challenges in any::<bool>(),
        renews in any::<bool>(),
    ) {
        let after_loss = if challenges { AfterLoss::Challenge } else { AfterLoss::Trust };
        let settings = format!("ssn_freq,integer,{frequency}\nrfc8613_b_2,bool,{renews}\n");
        let side = |ours, theirs| Side::new(ours, theirs, &settings, after_loss);
        play(&mut [side("l", "r"), side("r", "l")], steps)?;
    }
}
