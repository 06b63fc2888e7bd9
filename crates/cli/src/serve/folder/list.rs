//! `/.well-known/core` of a folder: the links to its files (RFC 6690), kept for a while.
//!
//! One walk at a time makes the list, so a flood of requests costs one walk; meanwhile the list before it is answered.
//! What the server itself writes and deletes changes the list at once.

use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lowmesh_coap::ResponseTemplate;
use lowmesh_coap::resource::{Methods, Resource, Route, Router};
use lowmesh_net::server::Request;
use lowmesh_wire::coap::Code;
use nix::dir::{Dir, Type};
use nix::fcntl::{AtFlags, OFlag};
use nix::sys::stat::{Mode, SFlag, fstatat};
use tokio::sync::Mutex as Turn;
use tokio::time::Instant;

use super::place::{Root, is_name, kind};
use super::{format, store};
use crate::console::say;
use crate::serve::reply::{code, lock};

/// Files that are listed; ours. More are served and not listed.
const LISTED_MAX: usize = 1000;
/// Octets of all links; ours.
const LIST_LEN_MAX: usize = 256 << 10;
/// What a link has beside its path at most, octets: two brackets, `;sz="` and 20 digits, `;ct=` and 5 digits, a comma.
const LINK_LEN: usize = 48;
/// Folders in folders that are looked into; ours.
const DEPTH_MAX: usize = 8;
/// Names that one walk reads; ours.
const WALK_MAX: usize = 100_000;
/// How long a list is good, at least; ours.
const AGE: Duration = Duration::from_secs(2);
/// How much longer than its walk a list is good at least: walks take no more than a tenth of a disk's time.
const AGE_PER_WALK: u32 = 9;

/// The list of the files of a folder.
#[derive(Default)]
pub struct List {
    kept: Mutex<Option<Kept>>,
    /// Who walks.
    turn: Arc<Turn<()>>,
}

struct Kept {
    links: Arc<Links>,
    good_until: Instant,
}

/// Links, at most so many.
#[derive(Clone, Default)]
pub struct Links {
    router: Router<()>,
    len: usize,
    octets: usize,
    cut: bool,
}

impl Links {
    /// Adds a link, or takes the place of the one to the same file; false when there is no room.
    fn add(&mut self, path: &str, size: u64) -> bool {
        // Each octet of a path may become three.
        let octets = 3 * path.len() + LINK_LEN;
        let known = self.router.get(path).is_some();
        if !known {
            if self.len == LISTED_MAX || self.octets + octets > LIST_LEN_MAX {
                self.cut = true;
                return false;
            }
            self.len += 1;
            self.octets += octets;
        }
        let link = Resource::new(Methods::GET, ()).format(format(path.as_ref()));
        self.router.insert(path, link.attribute("sz", &size.to_string()));
        true
    }
    fn remove(&mut self, path: &str) {
        if self.router.remove(path).is_some() {
            self.len -= 1;
            self.octets -= 3 * path.len() + LINK_LEN;
        }
    }
    /// Answers a request, whose query may narrow the list (RFC 6690 s4.1).
    pub fn answer(&self, request: &Request) -> ResponseTemplate {
        match self.router.route(&request.message, request.multicast) {
            Route::Answer(response) => response,
            Route::Resource { .. } | Route::Ignore => code(Code::NOT_FOUND),
        }
    }
}

impl List {
    /// The newest list, or the one before while the next is made.
    pub async fn current(self: Arc<Self>, root: Arc<Root>) -> Arc<Links> {
        if let Some(links) = self.good() {
            return links;
        }
        let turn = match self.turn.clone().try_lock_owned() {
            Ok(turn) => turn,
            Err(_somebody_walks) => {
                if let Some(links) = self.known() {
                    return links;
                }
                self.turn.clone().lock_owned().await
            }
        };
        if let Some(links) = self.good() {
            return links;
        }
        // The client may go away; the list is made all the same, for the next one.
        let made = tokio::task::spawn_blocking(move || {
            let links = self.make(&root);
            drop(turn);
            links
        });
        made.await.unwrap_or_default()
    }
    /// A file has been written, of so many octets.
    pub fn written(&self, path: &str, size: u64) {
        self.change(|links| _ = links.add(path, size));
    }
    /// A file has been deleted.
    pub fn deleted(&self, path: &str) {
        self.change(|links| links.remove(path));
    }

    fn change(&self, change: impl FnOnce(&mut Links)) {
        if let Some(kept) = &mut *lock(&self.kept) {
            change(Arc::make_mut(&mut kept.links));
        }
    }
    fn known(&self) -> Option<Arc<Links>> {
        lock(&self.kept).as_ref().map(|kept| kept.links.clone())
    }
    fn good(&self) -> Option<Arc<Links>> {
        let kept = lock(&self.kept);
        kept.as_ref().filter(|kept| Instant::now() < kept.good_until).map(|kept| kept.links.clone())
    }
    fn make(&self, root: &Root) -> Arc<Links> {
        let begun = Instant::now();
        let links = Arc::new(links_of(root));
        let now = Instant::now();
        let good_until = now + AGE.max((now - begun) * AGE_PER_WALK);
        let before = lock(&self.kept).replace(Kept { links: links.clone(), good_until });
        if links.cut && !before.is_some_and(|kept| kept.links.cut) {
            say!(
                "/.well-known/core lists only {} files of the folder; the server serves the others too",
                links.len
            );
        }
        links
    }
}

fn links_of(root: &Root) -> Links {
    let mut links = Links::default();
    let mut left = WALK_MAX;
    _ = walk(root.folder().as_fd(), "", DEPTH_MAX, &mut left, &mut |folder, path, name| {
        let about = fstatat(folder, name, AtFlags::AT_SYMLINK_NOFOLLOW);
        let Some(about) = about.ok().filter(|about| kind(about) == SFlag::S_IFREG) else {
            return ControlFlow::Continue(());
        };
        let size = u64::try_from(about.st_size).unwrap_or(0);
        if is_name(name) && !links.add(&format!("{path}/{name}"), size) {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    links.cut |= left == 0;
    links
}

/// Removes what a crash has left in a folder and those in it.
pub fn clean(root: &Root) {
    let mut left = WALK_MAX;
    _ = walk(root.folder().as_fd(), "", DEPTH_MAX, &mut left, &mut |folder, _, name| {
        store::clean(folder, name);
        ControlFlow::Continue(())
    });
}

/// Visits what is no folder, by its folder, the path of that, and its name, in order of names. Links are not followed,
/// hidden folders not looked into.
fn walk(
    folder: BorrowedFd<'_>,
    path: &str,
    depth: usize,
    left: &mut usize,
    visit: &mut impl FnMut(BorrowedFd<'_>, &str, &str) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let Ok(mut entries) = Dir::openat(folder, ".", flags, Mode::empty()) else {
        return ControlFlow::Continue(());
    };
    let mut names = Vec::new();
    for entry in entries.iter().flatten() {
        if *left == 0 {
            break;
        }
        *left -= 1;
        if let Ok(name) = entry.file_name().to_str()
            && name != "."
            && name != ".."
        {
            names.push((name.to_owned(), entry.file_type()));
        }
    }
    drop(entries);
    names.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    for (name, known) in names {
        let is_folder = match known {
            Some(known) => known == Type::Directory,
            None => fstatat(folder, name.as_str(), AtFlags::AT_SYMLINK_NOFOLLOW)
                .is_ok_and(|about| kind(&about) == SFlag::S_IFDIR),
        };
        if !is_folder {
            visit(folder, path, &name)?;
        } else if depth > 0 && is_name(&name) {
            let Ok(inner) = nix::fcntl::openat(folder, name.as_str(), flags, Mode::empty()) else {
                continue;
            };
            walk(inner.as_fd(), &format!("{path}/{name}"), depth - 1, left, visit)?;
        }
    }
    ControlFlow::Continue(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_bounded_in_number_and_in_octets() {
        let mut many = Links::default();
        let added = (0..2 * LISTED_MAX).filter(|number| many.add(&format!("/{number}"), 1)).count();
        assert_eq!((added, many.len, many.cut), (LISTED_MAX, LISTED_MAX, true));
        let mut long = Links::default();
        let name = |number: usize| format!("/{number}{}", "ä".repeat(1000));
        let added = (0..LISTED_MAX).filter(|number| long.add(&name(*number), 1)).count();
        assert!(added < LISTED_MAX && long.cut && long.octets <= LIST_LEN_MAX, "{added}");
        assert!(long.add(&name(0), 2), "one that is there already");
        long.remove(&name(0));
        long.remove("/none");
        assert_eq!(long.len, added - 1);
        assert!(long.add(&name(0), 2), "its room is free");
    }
}
