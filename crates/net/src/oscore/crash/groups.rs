//! The same for members of a group: no nonce protects two plaintexts with one key, and no request is taken twice (RFC 10021
//! s2.6.1 and s9), at whatever step a member is cut.

use lowmesh_oscore::group::{Configuration, Pending, Received, SignatureAlgorithm, credential_of};
use lowmesh_oscore::{Identity, PartialIv};

use super::super::group::StoredGroup;
use super::*;

/// The identities of the two members.
const MEMBERS: [&str; 2] = ["l", "r"];

/// A member, its disk and what it keeps in memory only.
struct Member {
    configuration: Configuration,
    store: FaultyStore,
    group: Option<StoredGroup>,
    pending: BTreeMap<usize, Pending>,
    received: Vec<(usize, Received)>,
}

/// Whose key it is, for whom (`None` for all), who drew the number, and the number.
type Nonce = (usize, Option<usize>, usize, PartialIv);

/// A message on the wire.
#[derive(Clone)]
struct Sent {
    from: usize,
    /// The request that it answers.
    request: Option<usize>,
    outer: StreamMessage,
}

#[derive(Default)]
struct Wire {
    messages: Vec<Sent>,
    sealed: BTreeMap<Nonce, Vec<u8>>,
    /// How often each request was given to an application.
    taken: BTreeMap<usize, u32>,
    counter: u64,
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect::<Vec<_>>().concat()
}

fn id(number: usize) -> Identity {
    Identity::new(MEMBERS[number].as_bytes()).expect("short")
}

impl Member {
    fn new(number: usize, settings: &str) -> Self {
        let keys = [[1; 32], [2; 32]];
        let credential = |key| hex(&credential_of(SignatureAlgorithm::EdDsa, key).expect("a key"));
        let other = 1 - number;
        let text = format!(
            "master_secret,ascii,0123456789abcdef\ngroup_id,ascii,g\nsender_id,ascii,{}\n\
             private_key,hex,{}\ncredential,hex,{}\nmember_id,ascii,{}\n\
             member_credential,hex,{}\n{settings}",
            MEMBERS[number],
            hex(&keys[number]),
            credential(&keys[number]),
            MEMBERS[other],
            credential(&keys[other]),
        );
        let configuration = Configuration::parse(&text).expect("our own");
        let (pending, received) = (BTreeMap::new(), Vec::new());
        Self { configuration, store: FaultyStore::default(), group: None, pending, received }
    }
    /// The member, which opens its state if it can.
    fn group(&mut self) -> Option<&mut StoredGroup> {
        if self.group.is_none() {
            let store = Box::new(self.store.clone());
            self.group = StoredGroup::resume(self.configuration.group(), store).ok();
        }
        self.group.as_mut()
    }
    fn end(&mut self, end: End) {
        if let (End::Orderly, Some(group)) = (end, self.group.take()) {
            let _it_may_fail = group.close();
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

impl Wire {
    /// A message leaves. It may use only numbers that a loss of power leaves used.
    fn leaves(&mut self, sent: Sent, durable: Option<&str>) -> Result<usize, TestCaseError> {
        let value = sent.outer.options.get(OptionNumber::OSCORE).expect("protected");
        let header = Header::parse(value).expect("our own");
        let peer = 1 - sent.from;
        let (maker, number) = match (header.partial_iv, sent.request) {
            (Some(number), _) => (sent.from, number),
            (None, Some(request)) => {
                let request = &self.messages[request].outer;
                let value = request.options.get(OptionNumber::OSCORE).expect("protected");
                (peer, Header::parse(value).expect("our own").partial_iv.expect("a request"))
            }
            (None, None) => return Err(TestCaseError::fail("a request without a number")),
        };
        if maker == sent.from {
            let line = durable.and_then(|text| text.lines().next()).unwrap_or_default();
            let stored = line.strip_prefix("sender_sequence,integer,").map(str::parse::<u64>);
            let number = number.padded().iter().fold(0, |all, one| all << 8 | u64::from(*one));
            prop_assert!(
                stored.is_some_and(|end| end.is_ok_and(|end| number < end)),
                "number {number} is used before {line:?} says so"
            );
        }
        let nonce = (sent.from, (!header.group).then_some(peer), maker, number);
        let before = self.sealed.insert(nonce, sent.outer.payload.clone());
        prop_assert!(
            before.is_none_or(|before| before == sent.outer.payload),
            "{nonce:?} protects two plaintexts"
        );
        self.messages.push(sent);
        Ok(self.messages.len() - 1)
    }
    /// The number of a message to a member, of requests or of responses: the latest is 0.
    fn to(&self, member: usize, responses: bool, back: usize) -> Option<usize> {
        let to =
            |(_, sent): &(usize, &Sent)| sent.from != member && sent.request.is_some() == responses;
        self.messages.iter().enumerate().rev().filter(to).nth(back).map(|(place, _)| place)
    }
}

/// A member asks the other, in pairwise mode or in that of all.
fn ask(
    member: &mut Member,
    number: usize,
    pairwise: bool,
    request: &StreamMessage,
    wire: &mut Wire,
) -> Result<(), TestCaseError> {
    let Some(group) = member.group() else { return Ok(()) };
    let to = pairwise.then(|| id(1 - number));
    match group.protect_request(to, request) {
        Ok((outer, pending)) => {
            let durable = member.store.disk(|disk| disk.durable.clone());
            let sent = Sent { from: number, request: None, outer };
            let place = wire.leaves(sent, durable.as_deref())?;
            member.pending.insert(place, pending);
            Ok(())
        }
        Err(StoreError::File { .. }) => Ok(()),
        Err(other) => Err(TestCaseError::fail(other.to_string())),
    }
}

/// A request arrives at a member.
fn arrive(
    member: &mut Member,
    number: usize,
    request: usize,
    wire: &mut Wire,
) -> Result<(), TestCaseError> {
    let outer = wire.messages[request].outer.clone();
    let Some(group) = member.group() else { return Ok(()) };
    match group.unprotect_request(&outer, &mut |_| true) {
        Ok(Ok((_, received))) => {
            let taken = wire.taken.entry(request).or_default();
            *taken += 1;
            prop_assert_eq!(*taken, 1, "a request is taken twice");
            member.received.push((request, received));
        }
        Ok(Err(Refusal::Challenged(outer))) => {
            let durable = member.store.disk(|disk| disk.durable.clone());
            let sent = Sent { from: number, request: Some(request), outer: *outer };
            wire.leaves(sent, durable.as_deref())?;
        }
        Ok(Err(_)) | Err(StoreError::File { .. }) => {}
        Err(other) => return Err(TestCaseError::fail(other.to_string())),
    }
    Ok(())
}

/// A member answers one of the requests that it has taken, perhaps again.
fn respond(
    member: &mut Member,
    number: usize,
    back: usize,
    wire: &mut Wire,
) -> Result<(), TestCaseError> {
    let response = plain(Code::CONTENT, &mut wire.counter);
    let Member { received, group: Some(group), .. } = member else { return Ok(()) };
    let Some(place) = received.len().checked_sub(back + 1) else { return Ok(()) };
    let (request, received) = &mut received[place];
    match group.protect_response(received, &response) {
        Ok(outer) => {
            let durable = member.store.disk(|disk| disk.durable.clone());
            let sent = Sent { from: number, request: Some(*request), outer };
            wire.leaves(sent, durable.as_deref()).map(|_| ())
        }
        Err(StoreError::File { .. }) => Ok(()),
        Err(other) => Err(TestCaseError::fail(other.to_string())),
    }
}

/// A response arrives at a member; a challenge is answered with its Echo in pairwise mode.
fn answered(
    member: &mut Member,
    number: usize,
    back: usize,
    wire: &mut Wire,
) -> Result<(), TestCaseError> {
    let Some(place) = wire.to(number, true, back) else { return Ok(()) };
    let Sent { request, outer, .. } = wire.messages[place].clone();
    let Member { pending, group: Some(group), .. } = member else { return Ok(()) };
    let pending = request.and_then(|request| pending.get_mut(&request));
    let Some(Ok(answer)) =
        pending.map(|pending| group.unprotect_response(pending, &outer, &mut |_| true))
    else {
        return Ok(());
    };
    let Some(echo) = answer.response.options.get(OptionNumber::ECHO) else { return Ok(()) };
    let mut again = plain(Code::FETCH, &mut wire.counter);
    again.options.insert(OptionNumber::ECHO, echo);
    ask(member, number, true, &again, wire)
}

fn play(members: &mut [Member; 2], steps: Vec<Step>) -> Result<(), TestCaseError> {
    let mut wire = Wire::default();
    for (place, step) in steps.into_iter().enumerate() {
        match step {
            Step::Request { side, observes } => {
                let mut request = plain(Code::FETCH, &mut wire.counter);
                if observes {
                    request.options.insert_uint(OptionNumber::OBSERVE, 0);
                }
                ask(&mut members[side], side, place % 2 == 0, &request, &mut wire)?;
            }
            Step::Arrive { side, request } => {
                if let Some(request) = wire.to(side, false, request) {
                    arrive(&mut members[side], side, request, &mut wire)?;
                }
            }
            Step::Respond { side, received } => {
                respond(&mut members[side], side, received, &mut wire)?;
            }
            Step::Answered { side, response } => {
                answered(&mut members[side], side, response, &mut wire)?;
            }
            Step::Fail { side, faults } => members[side].store.disk(|disk| disk.faults = faults),
            Step::Restart { side, end } => members[side].end(end),
        }
    }
    // When the disks work again so do the members.
    for (number, member) in members.iter_mut().enumerate() {
        member.store.disk(|disk| disk.faults.clear());
        let sent = wire.messages.len();
        let request = plain(Code::FETCH, &mut wire.counter);
        ask(member, number, false, &request, &mut wire)?;
        prop_assert_eq!(wire.messages.len(), sent + 1, "a disk that works is not enough");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn a_member_uses_no_nonce_twice_and_takes_no_request_twice_wherever_it_is_cut(
        steps in steps(),
        frequency in 1_u32..6,
        responses in prop_oneof![Just("group"), Just("pairwise")],
    ) {
        let settings = format!("ssn_freq,integer,{frequency}\nresponses,text,{responses}\n");
        play(&mut [0, 1].map(|number| Member::new(number, &settings)), steps)?;
    }
}

/// Exchanges of which the first saves fail, with an end of each kind after it: the next start goes on.
#[test]
fn an_exchange_is_cut_at_each_of_its_saves() {
    for fault in [Fault::Write, Fault::Rename, Fault::FolderSync] {
        for end in [End::Killed, End::PowerLost, End::Orderly] {
            for save in 0..4 {
                let mut members = [0, 1].map(|number| Member::new(number, ""));
                let exchange = |side: usize| {
                    [
                        Step::Request { side, observes: false },
                        Step::Arrive { side: 1 - side, request: 0 },
                        Step::Answered { side, response: 0 },
                        Step::Arrive { side: 1 - side, request: 0 },
                        Step::Respond { side: 1 - side, received: 0 },
                        Step::Arrive { side: 1 - side, request: 1 },
                    ]
                };
                let mut steps = Vec::from(exchange(0));
                for side in [0, 1] {
                    // The next saves fail, so many of them.
                    steps.push(Step::Fail { side, faults: vec![fault; save] });
                    steps.extend(exchange(0));
                    steps.push(Step::Restart { side, end });
                    steps.extend(exchange(0));
                    steps.extend(exchange(1));
                }
                let played = play(&mut members, steps);
                assert!(played.is_ok(), "{fault:?} {end:?} {save}: {played:?}");
            }
        }
    }
}
