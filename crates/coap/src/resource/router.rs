//! The tree of resources, and how a request finds its resource there.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::str;

use lowmesh_wire::coap::{Code, ContentFormat, Message, OptionNumber};

use super::condition::{State, check_conditions};
use super::discovery;
use super::entry::Resource;
use super::methods::Methods;
use crate::event::ResponseTemplate;

/// The result of routing a request.
#[derive(Debug)]
pub enum Route<'a, R> {
    /// To a resource.
    Resource {
        /// The resource.
        resource: &'a Resource<R>,
        /// How many of the first Uri-Path segments are its own path; more follow in a subtree.
        depth: usize,
    },
    /// Nowhere: the router answers.
    Answer(ResponseTemplate),
    /// Nowhere, in silence: it came by multicast and its target does not answer those.
    Ignore,
}

#[derive(Clone, Debug)]
struct Node<R> {
    resource: Option<Resource<R>>,
    below: BTreeMap<String, Node<R>>,
}

impl<R> Default for Node<R> {
    fn default() -> Self {
        Self { resource: None, below: BTreeMap::new() }
    }
}

/// The resources of a server, by path.
#[derive(Clone, Debug)]
pub struct Router<R> {
    root: Node<R>,
}

impl<R> Default for Router<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R> Router<R> {
    /// A router with no resources but `/.well-known/core`.
    pub fn new() -> Self {
        Self { root: Node::default() }
    }
    /// Inserts a resource at an absolute path, and returns the one that it replaces.
    pub fn insert(&mut self, path: &str, resource: Resource<R>) -> Option<Resource<R>> {
        let mut node = &mut self.root;
        for segment in segments(path) {
            node = node.below.entry(segment.into()).or_default();
        }
        node.resource.replace(resource)
    }
    /// Removes the resource at a path.
    pub fn remove(&mut self, path: &str) -> Option<Resource<R>> {
        let mut node = &mut self.root;
        for segment in segments(path) {
            node = node.below.get_mut(segment)?;
        }
        node.resource.take()
    }
    /// The resource at exactly this path.
    pub fn get(&self, path: &str) -> Option<&Resource<R>> {
        let mut node = &self.root;
        for segment in segments(path) {
            node = node.below.get(segment)?;
        }
        node.resource.as_ref()
    }
    /// Finds the resource of a request, or the router's own answer. `multicast` says that it came to a group.
    pub fn route(&self, request: &Message, multicast: bool) -> Route<'_, R> {
        // RFC 7252 s5.8: an unrecognised method MUST be answered with 4.05, whatever its target.
        if !Methods::ALL.contains(request.code) {
            return Route::Answer(ResponseTemplate::new(Code::METHOD_NOT_ALLOWED));
        }
        let Some((resource, depth)) = self.find(request) else {
            return self.route_without_resource(request, multicast);
        };
        if multicast && !resource.is_multicast() {
            return Route::Ignore;
        }
        match resource.refusal(request) {
            Some(code) => Route::Answer(ResponseTemplate::new(code)),
            None => Route::Resource { resource, depth },
        }
    }

    /// The resource whose path is longest.
    fn find(&self, request: &Message) -> Option<(&Resource<R>, usize)> {
        let mut node = &self.root;
        let (mut depth, mut whole) = (0, true);
        let mut subtree = subtree(node, 0);
        for segment in request.options.iter().values(OptionNumber::URI_PATH) {
            let next = str::from_utf8(segment).ok().and_then(|segment| node.below.get(segment));
            let Some(next) = next else {
                whole = false;
                break;
            };
            depth += 1;
            node = next;
            subtree = self::subtree(node, depth).or(subtree);
        }
        let exact = node.resource.as_ref().filter(|_| whole).map(|resource| (resource, depth));
        exact.or(subtree)
    }

    fn route_without_resource(&self, request: &Message, multicast: bool) -> Route<'_, R> {
        let path = request.options.iter().values(OptionNumber::URI_PATH);
        if !path.eq(discovery::PATH) {
            // RFC 7252 s5.10.8.1: If-Match asks for an existing target.
            let code = check_conditions(&request.options, State::Absent).err();
            return Route::Answer(ResponseTemplate::new(code.unwrap_or(Code::NOT_FOUND)));
        }
        let listed = Resource::new(Methods::GET, ()).format(ContentFormat::LINK_FORMAT);
        if let Some(code) = listed.refusal(request) {
            return Route::Answer(ResponseTemplate::new(code));
        }
        let response = discovery::answer(request, self.resources().into_iter());
        // RFC 7252 s8.2: with nothing useful to say, a multicast request is not answered.
        if multicast && response.payload.is_empty() {
            return Route::Ignore;
        }
        Route::Answer(response)
    }

    /// Every resource with its path, in order of paths.
    pub fn resources(&self) -> Vec<(String, &Resource<R>)> {
        let mut found = Vec::new();
        collect(&self.root, String::new(), &mut found);
        found
    }
}

fn collect<'a, R>(node: &'a Node<R>, path: String, found: &mut Vec<(String, &'a Resource<R>)>) {
    for (segment, next) in &node.below {
        let mut longer = path.clone();
        discovery::push_segment(&mut longer, segment);
        collect(next, longer, found);
    }
    if let Some(resource) = &node.resource {
        let path = if path.is_empty() { String::from("/") } else { path };
        found.push((path, resource));
    }
}

fn subtree<R>(node: &Node<R>, depth: usize) -> Option<(&Resource<R>, usize)> {
    node.resource
        .as_ref()
        .filter(|resource| resource.is_subtree())
        .map(|resource| (resource, depth))
}

/// The segments of an absolute path, as Uri-Path has them (RFC 7252 s6.4).
fn segments(path: &str) -> impl Iterator<Item = &str> {
    let path = path.strip_prefix('/').unwrap_or(path);
    path.split('/').filter(move |_| !path.is_empty())
}

#[cfg(test)]
mod tests;
