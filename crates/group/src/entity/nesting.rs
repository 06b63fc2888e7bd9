//! How entities nest: no cycle, a bound on levels, and a bound on the requests of a query.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use lowmesh_wire::coap::Code;

use super::{Entities, Entity};
use crate::params::{NESTING_MAX, REQUESTS_A_QUERY_MAX};
use crate::refusal::Refusal;
use crate::target::Target;

impl Entities {
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
