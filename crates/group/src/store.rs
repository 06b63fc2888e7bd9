//! What outlives the manager: each entity, the block of group addresses and the next of them.
//!
//! A step is what one input does. Its changes are in the store before any of its messages leave, so a manager that ends at any
//! moment has sent nothing that its successor does not know of. While a store fails, messages of steps that change something
//! wait, and those of other steps leave. An entity whose members were joining is stored as one whose
//! members leave: what is not whole is rolled back.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::fmt::Debug;
use core::net::IpAddr;

use lowmesh_units::{Duration, Instant};
use minicbor::{Decoder, Encoder, decode};

use crate::address::{Block, Numbers};
use crate::entity::{Entities, Entity, Member, Phase};
use crate::membership::Membership;
use crate::name::is_name;
use crate::params::{DEADLINE_MAX, DELAY_MAX, MEMBERS_MAX, REQUESTS_A_QUERY_MAX};
use crate::profile::{Communication, MessageType, Operation, Profile};
use crate::proposal::check_paths;
use crate::target::{Entry, Target};

/// One change: a new value for a key, or its removal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The key: `numbers`, `block`, or `entity/NAME`.
    pub key: String,
    /// The new value; `None` removes the key.
    pub value: Option<Vec<u8>>,
}

/// The place where a manager keeps its state. The gateway has a file or a database here.
pub trait Store: Debug + Send {
    /// Every key with its value, in any order.
    fn load(&mut self) -> Result<Vec<(String, Vec<u8>)>, StoreError>;
    /// Makes all changes of one step, or none of them.
    fn commit(&mut self, changes: &[Change]) -> Result<(), StoreError>;
    /// Whether there is room for another step. Without it clients can change nothing, and queries go on.
    fn has_room(&mut self) -> bool {
        true
    }
}

/// Why an operation of a store failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreError(pub String);

impl core::fmt::Display for StoreError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.0)
    }
}
impl core::error::Error for StoreError {}

/// A store in memory, which is lost when the program ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory(BTreeMap<String, Vec<u8>>);

impl Store for Memory {
    fn load(&mut self) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        Ok(self.0.iter().map(|(key, value)| (key.clone(), value.clone())).collect())
    }
    fn commit(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        for Change { key, value } in changes {
            match value {
                Some(value) => _ = self.0.insert(key.clone(), value.clone()),
                None => _ = self.0.remove(key),
            }
        }
        Ok(())
    }
}

/// The form of records; a reader refuses any other.
const VERSION: u8 = 1;
/// Fields of the record of an entity: without the client that created it, with it, and with a deadline.
const FIELDS_FIRST: u64 = 11;
const FIELDS_OWNER: u64 = 12;
const FIELDS: u64 = 13;
const NUMBERS: &str = "numbers";
const BLOCK: &str = "block";
const ENTITY: &str = "entity/";

/// What changed since the last commit.
pub(crate) fn changes(entities: &Entities) -> Vec<Change> {
    let mut changes = Vec::new();
    if entities.numbers_changed() {
        let value = entities.numbers().next().to_be_bytes().to_vec();
        changes.push(Change { key: NUMBERS.to_string(), value: Some(value) });
        if entities.has_own_block() {
            let value = entities.block().bits().to_be_bytes().to_vec();
            changes.push(Change { key: BLOCK.to_string(), value: Some(value) });
        }
    }
    for (name, entity) in entities.changed() {
        changes.push(Change { key: format!("{ENTITY}{name}"), value: entity.map(emit) });
    }
    changes
}

/// The entities of a store. Members that leave begin at `due`, and others are looked at then.
pub(crate) fn load(store: &mut dyn Store, due: Instant) -> Result<Entities, StoreError> {
    let mut entities = Entities::default();
    let mut block = None;
    for (key, value) in store.load()? {
        let bad = |what: &str| StoreError(format!("record {key:?} of the state: {what}"));
        if key == NUMBERS {
            let next =
                <[u8; 2]>::try_from(&value[..]).map_err(|_| bad("not a number of 16 bits"))?;
            entities.set_numbers(Numbers::from_next(u16::from_be_bytes(next)));
        } else if key == BLOCK {
            let bits = <[u8; 4]>::try_from(&value[..]).ok().map(u32::from_be_bytes);
            let bits = bits.and_then(Block::of_bits).ok_or_else(|| bad("not 24 bits"))?;
            block = Some(bits);
        } else if let Some(name) = key.strip_prefix(ENTITY) {
            let entity = parse(name, &value, due).map_err(|error| bad(&error.to_string()))?;
            check(&entity).map_err(bad)?;
            entities.insert(entity);
        } else {
            return Err(bad("no such key is known"));
        }
    }
    if let Some(block) = block {
        entities.set_block(block);
    }
    // Entities in a cycle lead to any number of requests.
    let is_heavy = |id: &u64| entities.requests(*id) >= REQUESTS_A_QUERY_MAX;
    if let Some(entity) = entities.ids().find(is_heavy).and_then(|id| entities.get(id)) {
        let what = format!("a query makes {REQUESTS_A_QUERY_MAX} requests or more");
        return Err(StoreError(format!("record \"{ENTITY}{}\" of the state: {what}", entity.name)));
    }
    entities.clear_changed();
    Ok(entities)
}

/// Refuses what no manager writes: queries rely on it. The error says which field is wrong.
fn check(entity: &Entity) -> Result<(), &'static str> {
    let Entity { profile, members, former, group, .. } = entity;
    let (count, is_live) = (members.len(), entity.phase == Phase::Live);
    let is_group = profile.communication == Communication::Multicast;
    let targets: Vec<Target> = members.iter().map(|member| member.target.clone()).collect();
    let is_node = |member: &Member| matches!(member.target, Target::Resource(_));
    let can_leave = !is_group || former.iter().all(is_node);
    let rules = [
        (is_name(&entity.name), "name"),
        (is_group == group.is_some(), "ect and the number of the group"),
        (!is_live || profile.replies.is_none_or(|some| usize::from(some) <= count), "enr"),
        (!profile.operations.is_empty(), "eo"),
        (matches!(profile.scope, 3..=5 | 0xe), "scope"),
        (!is_live || (1..=MEMBERS_MAX).contains(&count), "the number of members"),
        (check_paths(profile, &targets).is_ok() && can_leave, "er of a group"),
    ];
    rules.into_iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, what)| Err(what))
}

fn emit(entity: &Entity) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = Encoder::new(&mut out);
    let mut write = || -> Result<(), minicbor::encode::Error<core::convert::Infallible>> {
        let profile = &entity.profile;
        encoder.array(FIELDS)?.u8(VERSION)?.bool(entity.phase == Phase::Live)?;
        encoder.str(profile.message_type.name())?.str(profile.communication.name())?;
        encoder.u16(profile.replies.unwrap_or(0))?;
        encoder.array(profile.operations.len() as u64)?;
        for operation in &profile.operations {
            encoder.str(operation.name())?;
        }
        encoder.u64(profile.delay.as_millis())?.u8(profile.scope)?;
        encoder.u16(entity.group.unwrap_or(0))?;
        encoder.array(entity.members.len() as u64)?;
        for member in &entity.members {
            encoder.str(&member.entry().to_string())?;
        }
        encoder.array((entity.arriving.len() + entity.former.len()) as u64)?;
        for member in entity.arriving.iter().chain(&entity.former) {
            encoder.str(&member.entry().to_string())?;
        }
        encoder.str(&entity.owner.map(|owner| owner.to_string()).unwrap_or_default())?;
        encoder.u64(profile.deadline.map_or(0, Duration::as_millis))?;
        Ok(())
    };
    write().expect("a Vec takes everything");
    out
}

fn parse(name: &str, bytes: &[u8], due: Instant) -> Result<Entity, decode::Error> {
    let mut decoder = Decoder::new(bytes);
    let wrong = decode::Error::message;
    let fields = decoder.array()?;
    if !matches!(fields, Some(FIELDS_FIRST..=FIELDS)) || decoder.u8()? != VERSION {
        return Err(wrong("another version wrote it"));
    }
    let live = decoder.bool()?;
    let message_type = MessageType::from_name(decoder.str()?).ok_or_else(|| wrong("emt"))?;
    let communication = Communication::from_name(decoder.str()?).ok_or_else(|| wrong("ect"))?;
    let replies = Some(decoder.u16()?).filter(|replies| *replies > 0);
    let operations: Result<Vec<Operation>, decode::Error> = texts(&mut decoder)?
        .into_iter()
        .map(|name| Operation::from_name(&name).ok_or_else(|| wrong("eo")))
        .collect();
    let (operations, delay_ms) = (operations?, decoder.u64()?);
    if delay_ms > DELAY_MAX.as_millis() {
        return Err(wrong("delay"));
    }
    let delay = Duration::from_millis(delay_ms);
    let (scope, group) = (decoder.u8()?, Some(decoder.u16()?).filter(|number| *number > 0));
    let deadline = None;
    let profile =
        Profile { message_type, communication, replies, operations, delay, scope, deadline };
    let phase = if live { Phase::Live } else { Phase::Removing };
    let mut entity = Entity::new(name.to_string(), profile, phase, group);
    let stored = group.map(|_| Membership::stored(due));
    let members = entries(&mut decoder)?;
    entity.members = entity.enlist(members, stored.as_ref());
    let mut former = entries(&mut decoder)?;
    // A request to leave would end the membership of a member on the same node.
    former.retain(|one| !entity.members.iter().any(|member| member.stands_for(&one.target)));
    entity.former = entity.enlist(former, stored.as_ref());
    for member in &mut entity.former {
        if let Some(membership) = member.membership.as_deref_mut() {
            membership.leave(due);
        }
    }
    if fields >= Some(FIELDS_OWNER) {
        let owner = Some(decoder.str()?).filter(|owner| !owner.is_empty());
        let owner: Option<Result<IpAddr, _>> = owner.map(str::parse);
        entity.owner = owner.transpose().map_err(|_| wrong("owner"))?;
    }
    if fields >= Some(FIELDS) {
        let deadline_ms = Some(decoder.u64()?).filter(|deadline| *deadline > 0);
        if deadline_ms.is_some_and(|deadline| deadline > DEADLINE_MAX.as_millis()) {
            return Err(wrong("deadline"));
        }
        entity.profile.deadline = deadline_ms.map(Duration::from_millis);
    }
    if decoder.position() == bytes.len() { Ok(entity) } else { Err(wrong("octets follow it")) }
}

fn texts(decoder: &mut Decoder<'_>) -> Result<Vec<String>, decode::Error> {
    decoder.array_iter::<&str>()?.map(|text| text.map(String::from)).collect()
}

fn entries(decoder: &mut Decoder<'_>) -> Result<Vec<Entry>, decode::Error> {
    let entry = |text: String| Entry::parse(&text, &[]).map_err(|_| decode::Error::message("er"));
    texts(decoder)?.into_iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(owner: Option<IpAddr>) -> Vec<u8> {
        let mut entity = Entity::new("room".into(), Profile::default(), Phase::Live, None);
        entity.owner = owner;
        let member = Target::parse("coap://[fd00::1]/t", &[]).expect("a URI");
        entity.members = entity.enlist([member], None);
        emit(&entity)
    }

    #[test]
    fn a_record_says_who_created_the_entity_and_one_of_before_does_not() {
        let owner = Some(IpAddr::from([192, 0, 2, 1]));
        let parsed = |bytes: &[u8]| parse("room", bytes, Instant::ZERO);
        assert_eq!(parsed(&record(owner)).expect("our own").owner, owner);
        let unknown = record(None);
        assert_eq!(parsed(&unknown).expect("our own").owner, None);
        // An array of one field less, without the zero at the end, and of two, without the empty text.
        for (head, less) in [(0x8c, 1), (0x8b, 2)] {
            let before = [&[head], &unknown[1..unknown.len() - less]].concat();
            let entity = parsed(&before).expect("of an earlier version");
            assert_eq!((entity.owner, entity.members.len()), (None, 1));
            assert_eq!(entity.profile.deadline, None);
        }
        for end in 0..unknown.len() {
            assert!(parsed(&unknown[..end]).is_err(), "{end}");
        }
        let mut wrong = record(owner);
        let place = wrong.len() - 2;
        wrong[place] = b'x';
        assert!(parsed(&wrong).is_err());
    }

    #[test]
    fn a_record_keeps_the_names_of_members() {
        let mut entity = parse("room", &record(None), Instant::ZERO).expect("our own");
        entity.members[0].name = Some("desk".into());
        let again = parse("room", &emit(&entity), Instant::ZERO).expect("our own");
        assert_eq!(again.members[0].entry(), entity.members[0].entry());
    }

    #[test]
    fn a_record_keeps_the_deadline() {
        let mut entity = parse("room", &record(None), Instant::ZERO).expect("our own");
        entity.profile.deadline = Some(Duration::from_millis(4500));
        let again = parse("room", &emit(&entity), Instant::ZERO).expect("our own");
        assert_eq!(again.profile, entity.profile);
    }

    /// Loads the record of a room that differs from a valid one.
    fn loaded(change: impl FnOnce(&mut Entity), octets: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut entity = parse("room", &record(None), Instant::ZERO).expect("our own");
        change(&mut entity);
        let mut value = emit(&entity);
        octets(&mut value);
        let mut store = Memory::default();
        let change = Change { key: format!("{ENTITY}room"), value: Some(value) };
        store.commit(&[change]).expect("it does not fail");
        let state = load(&mut store, Instant::ZERO);
        state.map_or_else(
            |error| error.to_string(),
            |entities| format!("{}", entities.ids().count()),
        )
    }

    #[test]
    fn a_record_that_no_manager_writes_is_refused_with_its_name_and_field() {
        let same = |_: &mut Vec<u8>| {};
        assert_eq!(loaded(|_| {}, same), "1");
        let refused = |change: fn(&mut Entity), field: &str| {
            let error = loaded(change, same);
            assert!(error.starts_with("record \"entity/room\" of the state: "), "{error}");
            assert!(error.ends_with(field), "{error}: {field}");
        };
        let itself = |entity: &mut Entity| {
            let room = Target::parse("/e/room?eo=min", &[]).expect("an entity");
            entity.members = entity.enlist([room], None);
        };
        refused(itself, "a query makes 4096 requests or more");
        refused(|entity| entity.members.clear(), "the number of members");
        refused(|entity| entity.profile.operations.clear(), "eo");
        refused(|entity| entity.profile.replies = Some(2), "enr");
        refused(|entity| entity.profile.scope = 0xff, "scope");
        refused(|entity| entity.group = Some(1), "ect and the number of the group");
        refused(|entity| entity.profile.delay = Duration::from_secs(61), "delay");
        refused(|entity| entity.profile.deadline = Some(Duration::from_secs(248)), "deadline");
        let group = |entity: &mut Entity| {
            (entity.group, entity.profile.communication) = (Some(1), Communication::Multicast);
        };
        assert_eq!(loaded(group, same), "1");
        let named = |entity: &mut Entity| {
            (entity.group, entity.profile.communication) = (Some(1), Communication::Multicast);
            let named = Target::parse("coap://lamp.example/t", &[]).expect("a URI");
            entity.members = entity.enlist([named], None);
        };
        refused(named, "er of a group");
        // More milliseconds than a span of time has.
        let error = loaded(
            |entity| entity.profile.delay = Duration::MAX,
            |octets| {
                let place = octets.iter().position(|octet| *octet == 0x1b).expect("8 octets");
                octets[place + 1..place + 9].fill(0xff);
            },
        );
        assert!(error.contains("delay"), "{error}");
    }
}
