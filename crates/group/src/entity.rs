//! Entities and their members, and which of them a store has to learn of.

mod nesting;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr};

use lowmesh_units::Instant;
use lowmesh_wire::coap::Code;

use crate::address::{Block, Numbers};
use crate::membership::{Membership, group_uri};
use crate::output::RequestId;
use crate::params::{ENTITIES_A_CLIENT_MAX, ENTITIES_MAX, LEAVING_MAX, STRAYS_MAX};
use crate::profile::document::Field;
use crate::profile::{Operation, Profile};
use crate::refusal::Refusal;
use crate::target::{Authority, Entry, Target};

/// One member of an entity.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its name among the members that the entity has had.
    pub(crate) id: u32,
    /// Its name in results.
    pub(crate) name: Option<String>,
    /// The resource.
    pub(crate) target: Target,
    /// Of a member of a group.
    pub(crate) membership: Option<Box<Membership>>,
}

impl Member {
    /// Whether the member can stand for a target without joining again: the node is in the group, whatever the path of
    /// its resource.
    pub(crate) fn stands_for(&self, target: &Target) -> bool {
        let is_node = || match (&self.target, target) {
            (Target::Resource(one), Target::Resource(other)) => Authority::of(one).is_of(other),
            _ => false,
        };
        self.target == *target || (self.membership.is_some() && is_node())
    }
    /// The member as a profile writes it.
    pub(crate) fn entry(&self) -> Entry {
        Entry { name: self.name.clone(), target: self.target.clone() }
    }
    /// What results call it.
    pub(crate) fn label(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.target.label())
    }
    /// The node of the member; an entity has none.
    pub(crate) fn authority(&self) -> Option<Authority> {
        match &self.target {
            Target::Resource(uri) => Some(Authority::of(uri)),
            Target::Entity { .. } => None,
        }
    }
}

/// How far an entity is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Its members are joining; it answers no query.
    Joining,
    Live,
    /// Its members are leaving; its name and address are not free.
    Removing,
}

/// A request of a client that waits for members to join or leave.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) request: RequestId,
    pub(crate) kind: Change,
}

/// What a pending request changes.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Create,
    Update { order: Vec<Entry>, profile: Profile },
    Delete,
}

/// A group of resources.
#[derive(Clone, Debug)]
pub(crate) struct Entity {
    pub(crate) name: String,
    pub(crate) profile: Profile,
    pub(crate) phase: Phase,
    pub(crate) members: Vec<Member>,
    /// Those that join before they become members.
    pub(crate) arriving: Vec<Member>,
    /// Those that have to leave.
    pub(crate) former: Vec<Member>,
    /// The number of the group address.
    pub(crate) group: Option<u16>,
    /// The block of the group address.
    block: Block,
    /// The client that created it, for its share; unknown in records of earlier versions.
    pub(crate) owner: Option<IpAddr>,
    pub(crate) pending: Option<Pending>,
    serial: u32,
}

impl Entity {
    pub(crate) fn new(name: String, profile: Profile, phase: Phase, group: Option<u16>) -> Self {
        let (members, arriving, former) = (Vec::new(), Vec::new(), Vec::new());
        let (block, owner, pending, serial) = (Block::PUBLISHED, None, None, 0);
        Self {
            name,
            profile,
            phase,
            members,
            arriving,
            former,
            group,
            block,
            owner,
            pending,
            serial,
        }
    }
    /// New members.
    pub(crate) fn enlist(
        &mut self,
        entries: impl IntoIterator<Item = impl Into<Entry>>,
        membership: Option<&Membership>,
    ) -> Vec<Member> {
        let enlist = |entry: Entry| {
            self.serial += 1;
            let membership = membership.cloned().map(Box::new);
            Member { id: self.serial, name: entry.name, target: entry.target, membership }
        };
        entries.into_iter().map(Into::into).map(enlist).collect()
    }
    pub(crate) fn address(&self) -> Option<Ipv6Addr> {
        self.group.map(|number| self.block.address(self.profile.scope, number))
    }
    /// Every member, present, arriving or former.
    pub(crate) fn everyone(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().chain(&self.arriving).chain(&self.former)
    }
    /// What a query asks now, or once those that arrive have joined.
    fn targets(&self) -> impl Iterator<Item = &Target> {
        self.members.iter().chain(&self.arriving).map(|member| &member.target)
    }
    pub(crate) fn member_mut(&mut self, id: u32) -> Option<&mut Member> {
        let lists = [&mut self.members, &mut self.arriving, &mut self.former];
        lists.into_iter().flatten().find(|member| member.id == id)
    }
    /// The fields of its profile (S002 s2.3.1 and s4.2).
    pub(crate) fn fields(&self) -> Vec<(&'static str, Field)> {
        let profile = &self.profile;
        let text = |text: &str| Field::Text(text.to_string());
        let members = self.members.iter().map(|member| member.entry().to_string()).collect();
        let operations = profile.operations.iter().map(|one: &Operation| one.name().to_string());
        let mut fields = vec![
            ("name", text(&self.name)),
            ("er", Field::List(members)),
            ("emt", text(profile.message_type.name())),
            ("ect", text(profile.communication.name())),
            ("enr", profile.replies.map_or_else(|| text("all"), |some| Field::Number(some.into()))),
            ("eo", Field::List(operations.collect())),
            ("delay", Field::Number(profile.delay.as_millis())),
        ];
        fields.extend(profile.deadline.map(|one| ("deadline", Field::Number(one.as_millis()))));
        if let (Some(group), Some(first)) = (self.address(), self.members.first())
            && let Target::Resource(uri) = &first.target
        {
            let port = uri.explicit_port.map(|port| format!(":{port}")).unwrap_or_default();
            let path = uri.path.iter().fold(port, |path, segment| format!("{path}/{segment}"));
            fields.push(("mcastURI", Field::Text(group_uri(group, &path))));
        }
        fields
    }
    /// A line for each member: where it stands, and its URI.
    pub(crate) fn standing(&self) -> Vec<(&Member, String)> {
        let stands = |member: &Member| {
            let state = member.membership.as_ref().map(|one| one.state().to_string());
            state.unwrap_or_else(|| "member".to_string())
        };
        self.everyone().map(|member| (member, stands(member))).collect()
    }
}

/// All entities of a manager.
#[derive(Debug, Default)]
pub(crate) struct Entities {
    all: BTreeMap<u64, Entity>,
    names: BTreeMap<String, u64>,
    numbers: Numbers,
    block: Option<Block>,
    /// The entities with a group, by the numbers of their addresses.
    held: BTreeMap<u16, u64>,
    /// How many entities each client has created.
    shares: BTreeMap<IpAddr, usize>,
    serial: u64,
    /// Names of entities that changed since the store got them.
    changed: BTreeSet<String>,
    numbers_changed: bool,
    /// Counts changes.
    revision: u64,
}

impl Entities {
    pub(crate) fn get(&self, id: u64) -> Option<&Entity> {
        self.all.get(&id)
    }
    pub(crate) fn get_mut(&mut self, id: u64) -> Option<&mut Entity> {
        self.all.get_mut(&id)
    }
    pub(crate) fn id(&self, name: &str) -> Option<u64> {
        self.names.get(name).copied()
    }
    /// An entity that answers queries.
    pub(crate) fn live(&self, name: &str) -> Option<(u64, &Entity)> {
        let id = self.id(name)?;
        self.all.get(&id).filter(|entity| entity.phase == Phase::Live).map(|entity| (id, entity))
    }
    /// Live entities in order of their names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entity> {
        self.names.keys().filter_map(|name| self.live(name)).map(|(_, entity)| entity)
    }
    /// When the memberships of all members are due.
    pub(crate) fn dues_mut(&mut self) -> impl Iterator<Item = &mut Instant> {
        let members = self.all.values_mut().flat_map(|entity| {
            entity.members.iter_mut().chain(&mut entity.arriving).chain(&mut entity.former)
        });
        members.filter_map(|member| member.membership.as_deref_mut()?.due.as_mut())
    }
    pub(crate) fn ids(&self) -> impl Iterator<Item = u64> {
        self.all.keys().copied()
    }
    /// Checks that there is room for one more entity of a client.
    pub(crate) fn check_room(&self, client: IpAddr) -> Result<(), Refusal> {
        let refuse = |detail| Err(Refusal::new(Code::FORBIDDEN, "manager full", detail));
        if self.all.len() >= ENTITIES_MAX {
            return refuse(format!("{ENTITIES_MAX} entities: delete one first"));
        }
        if self.shares.get(&client).is_some_and(|share| *share >= ENTITIES_A_CLIENT_MAX) {
            let share = format!("{ENTITIES_A_CLIENT_MAX} of {ENTITIES_MAX} entities");
            return refuse(format!("this client has created {share}: delete one first"));
        }
        Ok(())
    }
    /// A name that no entity has.
    pub(crate) fn free_name(&self, is_reserved: impl Fn(&str) -> bool) -> String {
        let free = |name: &String| !self.names.contains_key(name) && !is_reserved(name);
        let mut names = (1_u32..).map(|number| format!("e{number}"));
        names.find(free).expect("there are more numbers than entities")
    }
    pub(crate) fn insert(&mut self, mut entity: Entity) -> u64 {
        self.serial += 1;
        entity.block = self.block();
        self.names.insert(entity.name.clone(), self.serial);
        self.held.extend(entity.group.map(|number| (number, self.serial)));
        if let Some(owner) = entity.owner {
            *self.shares.entry(owner).or_default() += 1;
        }
        self.note(entity.name.clone());
        self.all.insert(self.serial, entity);
        self.serial
    }
    /// Forgets an entity; its name and address are free.
    pub(crate) fn erase(&mut self, id: u64) {
        if let Some(entity) = self.all.remove(&id) {
            self.names.remove(&entity.name);
            if let Some(number) = entity.group {
                self.held.remove(&number);
            }
            if let Some(owner) = entity.owner
                && let Some(share) = self.shares.get_mut(&owner)
            {
                *share -= 1;
                if *share == 0 {
                    self.shares.remove(&owner);
                }
            }
            self.note(entity.name);
        }
    }
    /// Notes that the store has to learn of an entity.
    pub(crate) fn touch(&mut self, id: u64) {
        if let Some(entity) = self.all.get(&id) {
            self.note(entity.name.clone());
        }
    }
    fn note(&mut self, name: String) {
        self.changed.insert(name);
        self.revision += 1;
    }
    /// Counts all changes.
    pub(crate) const fn revision(&self) -> u64 {
        self.revision
    }
    pub(crate) fn allocate(&mut self) -> Option<u16> {
        let held = &self.held;
        self.numbers_changed = true;
        self.revision += 1;
        self.numbers.allocate(|number| held.contains_key(&number))
    }
    pub(crate) fn set_numbers(&mut self, numbers: Numbers) {
        self.numbers = numbers;
    }
    /// The block of all group addresses: that of S002, unless another was set.
    pub(crate) fn block(&self) -> Block {
        self.block.unwrap_or(Block::PUBLISHED)
    }
    /// Sets the block.
    pub(crate) fn set_block(&mut self, block: Block) {
        self.block = Some(block);
        self.numbers_changed = true;
        for entity in self.all.values_mut() {
            entity.block = block;
        }
    }
    /// Whether group addresses can have been given out, and of which block is not known.
    pub(crate) fn has_block(&self) -> bool {
        self.block.is_some() || !self.held.is_empty() || self.numbers != Numbers::default()
    }
    /// Whether no other manager has the same addresses.
    pub(crate) fn has_own_block(&self) -> bool {
        self.block.is_some_and(|block| block != Block::PUBLISHED)
    }
    /// Groups of this manager in a list that a node has no business in: no entity has the node there.
    pub(crate) fn strays(&self, node: &Authority, listed: &[Ipv6Addr]) -> Vec<Ipv6Addr> {
        let is_stray = |address: &&Ipv6Addr| {
            let Some((_, number)) = self.block().number_of(**address) else { return false };
            let entity = self.held.get(&number).and_then(|id| self.all.get(id));
            let entity = entity.filter(|entity| entity.address() == Some(**address));
            !entity.is_some_and(|entity| {
                entity.everyone().any(|member| member.authority().as_ref() == Some(node))
            })
        };
        if !self.has_own_block() {
            return Vec::new();
        }
        listed.iter().filter(is_stray).take(STRAYS_MAX).copied().collect()
    }
    pub(crate) const fn numbers(&self) -> Numbers {
        self.numbers
    }
    pub(crate) fn is_changed(&self) -> bool {
        self.numbers_changed || !self.changed.is_empty()
    }
    pub(crate) const fn numbers_changed(&self) -> bool {
        self.numbers_changed
    }
    pub(crate) fn changed(&self) -> impl Iterator<Item = (&str, Option<&Entity>)> {
        let entity = |name: &str| self.id(name).and_then(|id| self.all.get(&id));
        self.changed.iter().map(move |name| (name.as_str(), entity(name)))
    }
    pub(crate) fn clear_changed(&mut self) {
        self.changed.clear();
        self.numbers_changed = false;
    }
    /// Names of the entities that have another as a member.
    pub(crate) fn parents(&self, name: &str) -> Vec<&str> {
        let has = |member: &Member| matches!(&member.target, Target::Entity { name: one, .. } if one == name);
        let parents = self.all.values().filter(|entity| entity.everyone().any(has));
        parents.map(|entity| entity.name.as_str()).collect()
    }
    /// Checks the bound on members together with those that are leaving. A silent member takes a week to leave.
    pub(crate) fn check_leaving(&self, name: &str, members: usize) -> Result<(), Refusal> {
        let leaving = self.id(name).and_then(|id| self.get(id)).map_or(0, |one| one.former.len());
        if leaving == 0 || leaving + members <= LEAVING_MAX {
            return Ok(());
        }
        let detail = format!("er: {leaving} members have not left {name:?} yet: come again later");
        Err(Refusal::new(Code::CONFLICT, "members are leaving", detail))
    }
}

#[cfg(test)]
mod tests;
