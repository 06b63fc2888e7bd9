//! Entities and their members, and which of them a store has to learn of.

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
use crate::params::{
    ENTITIES_A_CLIENT_MAX, ENTITIES_MAX, LEAVING_MAX, NESTING_MAX, REQUESTS_A_QUERY_MAX, STRAYS_MAX,
};
use crate::profile::document::Field;
use crate::profile::{Operation, Profile};
use crate::refusal::Refusal;
use crate::target::{Authority, Target};

/// One member of an entity.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its name among the members that the entity has had.
    pub(crate) id: u32,
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
    Update { order: Vec<Target>, profile: Profile },
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
    /// A new member of these targets each.
    pub(crate) fn enlist(
        &mut self,
        targets: impl IntoIterator<Item = Target>,
        membership: Option<&Membership>,
    ) -> Vec<Member> {
        let enlist = |target| {
            self.serial += 1;
            let membership = membership.cloned().map(Box::new);
            Member { id: self.serial, target, membership }
        };
        targets.into_iter().map(enlist).collect()
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
        let targets = self.members.iter().map(|member| member.target.to_string()).collect();
        let operations = profile.operations.iter().map(|one: &Operation| one.name().to_string());
        let mut fields = vec![
            ("name", text(&self.name)),
            ("er", Field::List(targets)),
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
    /// Checks the members that an entity is to have: sub-entities are there, there is no cycle, and a query stays
    /// within [`REQUESTS_A_QUERY_MAX`], of this entity and of those above it.
    pub(crate) fn check_nesting(&self, name: &str, targets: &[Target]) -> Result<(), Refusal> {
        for target in targets {
            if let Target::Entity { name: member, .. } = target {
                if member == name || self.leads_to(member, name) {
                    let detail = format!("er: {target} leads back to {name:?}");
                    return Err(Refusal::new(Code::CONFLICT, "cycle of entities", detail));
                }
                if self.live(member).is_none() {
                    let detail = format!("er: there is no entity {member:?}");
                    return Err(Refusal::new(Code::NOT_FOUND, "unknown member", detail));
                }
            }
        }
        if self.levels_above(name) + 1 + self.levels_of(targets) > NESTING_MAX {
            let detail =
                format!("er: {name:?} would be in or above {NESTING_MAX} other levels of entities");
            return Err(Refusal::new(Code::CONFLICT, "entities too deep", detail));
        }
        let change = Some((name, targets));
        if self.weight(targets.iter(), change) >= REQUESTS_A_QUERY_MAX {
            return Err(too_heavy(name));
        }
        // Entities above this one grow with it, as often as they lead to it.
        for entity in self.ancestors(name).into_iter().filter_map(|id| self.all.get(&id)) {
            if self.weight(entity.targets(), change) >= REQUESTS_A_QUERY_MAX {
                return Err(too_heavy(&entity.name));
            }
        }
        Ok(())
    }
    /// Requests that a query of an entity makes, sub-entities included.
    pub(crate) fn requests(&self, id: u64) -> usize {
        self.all.get(&id).map_or(0, |entity| self.weight(entity.targets(), None))
    }
    fn leads_to(&self, from: &str, to: &str) -> bool {
        let (mut waiting, mut seen) = (vec![from], BTreeSet::new());
        while let Some(name) = waiting.pop() {
            if name == to {
                return true;
            }
            let entity = self.id(name).filter(|id| seen.insert(*id)).and_then(|id| self.get(id));
            let members = entity.into_iter().flat_map(Entity::everyone);
            waiting.extend(members.filter_map(|member| match &member.target {
                Target::Entity { name, .. } => Some(name.as_str()),
                Target::Resource(_) => None,
            }));
        }
        false
    }
    /// The parents of each entity. Empty if `name` is new, because a new entity has no parent.
    fn parents_unless_new(&self, name: &str) -> BTreeMap<&str, Vec<u64>> {
        let mut parents: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        let all = self.all.iter().filter(|_| self.names.contains_key(name));
        for (id, entity) in all {
            for member in entity.everyone() {
                if let Target::Entity { name, .. } = &member.target {
                    parents.entry(name).or_default().push(*id);
                }
            }
        }
        parents
    }
    /// Levels of entities above one, counted up to [`NESTING_MAX`].
    fn levels_above<'a>(&'a self, name: &'a str) -> usize {
        let parents = self.parents_unless_new(name);
        let above = |level: &BTreeSet<&'a str>| -> BTreeSet<&'a str> {
            let ids = level.iter().filter_map(|name| parents.get(name)).flatten();
            ids.filter_map(|id| self.all.get(id)).map(|entity| entity.name.as_str()).collect()
        };
        levels(above(&[name].into()), above)
    }
    /// Levels of entities among targets and below them, counted up to [`NESTING_MAX`].
    fn levels_of<'a>(&'a self, targets: &'a [Target]) -> usize {
        let entities = |level: &BTreeSet<&'a str>| -> BTreeSet<&'a str> {
            let ids = level.iter().filter_map(|name| self.id(name));
            let entities = ids.filter_map(|id| self.all.get(&id));
            entities.flat_map(Entity::targets).filter_map(Target::entity_name).collect()
        };
        levels(targets.iter().filter_map(Target::entity_name).collect(), entities)
    }
    fn ancestors(&self, name: &str) -> BTreeSet<u64> {
        let parents = self.parents_unless_new(name);
        let (mut waiting, mut found) = (vec![name], BTreeSet::new());
        while let Some(name) = waiting.pop() {
            for id in parents.get(name).into_iter().flatten() {
                if found.insert(*id) {
                    waiting.extend(self.all.get(id).map(|entity| entity.name.as_str()));
                }
            }
        }
        found
    }
    /// Requests for targets, counted up to [`REQUESTS_A_QUERY_MAX`] or a little more; with a change, as if the entity of
    /// that name had these members.
    fn weight<'a>(
        &'a self,
        targets: impl Iterator<Item = &'a Target>,
        change: Option<(&'a str, &'a [Target])>,
    ) -> usize {
        let (mut waiting, mut weight) = (Vec::new(), 0);
        weigh(targets, &mut waiting, &mut weight);
        while let Some(name) = waiting.pop()
            && weight < REQUESTS_A_QUERY_MAX
        {
            if let Some((_, members)) = change.filter(|(changed, _)| *changed == name) {
                weigh(members.iter(), &mut waiting, &mut weight);
            } else {
                let entity = self.id(name).and_then(|id| self.all.get(&id));
                let members = entity.into_iter().flat_map(Entity::targets);
                weigh(members, &mut waiting, &mut weight);
            }
        }
        weight
    }
}

/// Counts levels of entities from the first on, up to [`NESTING_MAX`].
fn levels<'a>(
    first: BTreeSet<&'a str>,
    next: impl Fn(&BTreeSet<&'a str>) -> BTreeSet<&'a str>,
) -> usize {
    let (mut level, mut count) = (first, 0);
    while !level.is_empty() && count < NESTING_MAX {
        level = next(&level);
        count += 1;
    }
    count
}

/// Counts targets, and notes the entities among them.
fn weigh<'a>(
    targets: impl Iterator<Item = &'a Target>,
    waiting: &mut Vec<&'a str>,
    weight: &mut usize,
) {
    for target in targets {
        *weight += 1;
        if let Target::Entity { name, .. } = target {
            waiting.push(name);
        }
    }
}

fn too_heavy(name: &str) -> Refusal {
    let detail = format!(
        "a query of {name:?} would make more than {REQUESTS_A_QUERY_MAX} requests: use fewer or smaller members"
    );
    Refusal::new(Code::REQUEST_ENTITY_TOO_LARGE, "entity too large", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(all: &mut Entities, name: &str, members: &[&str]) {
        let mut entity = Entity::new(name.into(), Profile::default(), Phase::Live, None);
        let targets: Vec<Target> =
            members.iter().map(|text| Target::parse(text, &[]).expect(text)).collect();
        entity.members = entity.enlist(targets, None);
        all.insert(entity);
    }

    fn targets(texts: &[&str]) -> Vec<Target> {
        texts.iter().map(|text| Target::parse(text, &[]).expect(text)).collect()
    }

    #[test]
    fn a_cycle_of_any_length_is_refused() {
        let mut all = Entities::default();
        with(&mut all, "room", &["coap://a/t"]);
        with(&mut all, "floor", &["/e/room"]);
        with(&mut all, "house", &["/e/floor"]);
        for (name, member) in [("room", "/e/house"), ("room", "/e/room?eo=avg"), ("new", "/e/new")]
        {
            let refusal = all.check_nesting(name, &targets(&[member])).expect_err(name);
            assert_eq!(refusal.title, "cycle of entities");
        }
        assert_eq!(all.check_nesting("new", &targets(&["/e/house", "/e/room"])), Ok(()));
        let unknown = all.check_nesting("new", &targets(&["/e/attic"])).expect_err("no attic");
        assert_eq!(unknown.code, Code::NOT_FOUND);
    }

    #[test]
    fn a_client_has_a_quarter_of_the_entities_until_it_deletes_one() {
        let mut all = Entities::default();
        let (greedy, other) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        let add = |all: &mut Entities, owner: Option<IpAddr>, number: usize| {
            let name = format!("e{number}");
            let mut entity = Entity::new(name, Profile::default(), Phase::Live, None);
            entity.owner = owner;
            all.insert(entity)
        };
        let mut last = 0;
        for number in 0..ENTITIES_A_CLIENT_MAX {
            assert_eq!(all.check_room(greedy), Ok(()));
            last = add(&mut all, Some(greedy), number);
        }
        let refusal = all.check_room(greedy).expect_err("it has its share");
        assert!(refusal.code == Code::FORBIDDEN && refusal.detail.contains("1024 of 4096"));
        assert_eq!(all.check_room(other), Ok(()));
        all.erase(last);
        assert_eq!(all.check_room(greedy), Ok(()));
        // Those of unknown clients count for all.
        for number in ENTITIES_A_CLIENT_MAX - 1..ENTITIES_MAX {
            add(&mut all, None, number);
        }
        assert!(all.check_room(other).is_err_and(|refusal| refusal.detail.contains("4096")));
    }

    #[test]
    fn entities_nest_to_a_depth_from_above_and_from_below() {
        let mut all = Entities::default();
        with(&mut all, "a1", &["coap://a/t"]);
        for level in 2..=NESTING_MAX {
            let (name, member) = (format!("a{level}"), format!("/e/a{}", level - 1));
            assert_eq!(all.check_nesting(&name, &targets(&[&member])), Ok(()), "{name}");
            with(&mut all, &name, &[&member]);
        }
        let top = format!("/e/a{NESTING_MAX}");
        let refusal = all.check_nesting("above", &targets(&[&top])).expect_err("too deep");
        assert_eq!(refusal.title, "entities too deep");
        with(&mut all, "below", &["coap://b/t"]);
        let refusal = all.check_nesting("a1", &targets(&["/e/below"])).expect_err("too deep");
        assert_eq!(refusal.title, "entities too deep");
        assert_eq!(all.check_nesting("a2", &targets(&["/e/below"])), Ok(()));
    }

    #[test]
    fn entities_that_double_with_each_level_are_bounded() {
        let mut all = Entities::default();
        with(&mut all, "a0", &["coap://a/t", "coap://b/t"]);
        let mut refused = None;
        for level in 1..20 {
            let members = [format!("/e/a{}", level - 1), format!("/e/a{}?eo=avg", level - 1)];
            let members: Vec<&str> = members.iter().map(String::as_str).collect();
            let name = format!("a{level}");
            if all.check_nesting(&name, &targets(&members)).is_err() {
                refused = Some(level);
                break;
            }
            with(&mut all, &name, &members);
        }
        // 2^(n + 2) - 2 requests at level n.
        assert_eq!(refused, Some(11));
        // The bottom cannot grow under the top either.
        let many: Vec<String> = (0..200).map(|node| format!("coap://n{node}/t")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(all.check_nesting("a9", &targets(&many)).is_ok());
        // It counts for each place at which the top leads to it: 1,024 places here.
        let few: Vec<&str> = many.iter().copied().take(3).collect();
        let refusal = all.check_nesting("a0", &targets(&few)).expect_err("3,072 members");
        assert_eq!(refusal.title, "entity too large");
        assert!(all.check_nesting("a0", &targets(&["coap://c/t", "coap://d/t"])).is_ok());
    }
}
