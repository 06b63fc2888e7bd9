//! The files of a folder as resources: GET with entity tags and formats, the list of files, and if allowed PUT and
//! DELETE.
//!
//! A path of a request names a file by its segments, none of which can lead out of the folder: not `..`, not a
//! separator inside a segment, not a link to elsewhere. Served are regular files that are not hidden, under their
//! names or through links.
//!
//! Files respond to group requests only if the owner of the server says that it belongs to groups: RFC 7252 s11.3 and RFC
//! 10020 s3.6 limit group requests to resources that need them.

mod list;
mod place;
mod places;
mod store;
mod usage;

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::{Arc, Mutex};

use lowmesh_coap::ResponseTemplate;
use lowmesh_coap::resource::{Methods, Resource, State, check_conditions};
use lowmesh_net::server::{Changes, Handler, Request, Server};
use lowmesh_net::source::Source;
use lowmesh_wire::coap::{Code, ContentFormat, OptionNumber};
use nix::sys::stat::fstat;

use self::list::List;
use self::place::{Found, Place, Root, tag};
use self::places::Places;
use self::store::{Serial, Unfinished};
use self::usage::Room;
pub use self::usage::Usage;
use super::reply::{Document, code, error, lock, unavailable};
use crate::failure::Failure;

/// The longest file that is served, octets: what a server keeps of representations whose later blocks may be asked for.
const FILE_MAX: u64 = 4 << 20;
/// How often a file is read that changes while it is being read.
const READINGS: usize = 3;

/// Formats by the ends of names; everything else is octets.
const FORMATS: [(&str, ContentFormat); 12] = [
    ("cbor", ContentFormat::CBOR),
    ("csv", ContentFormat::TEXT_PLAIN),
    ("exi", ContentFormat::EXI),
    ("json", ContentFormat::JSON),
    ("link", ContentFormat::LINK_FORMAT),
    ("log", ContentFormat::TEXT_PLAIN),
    ("md", ContentFormat::TEXT_PLAIN),
    ("senml", ContentFormat::SENML_JSON),
    ("senmlc", ContentFormat::SENML_CBOR),
    ("toml", ContentFormat::TEXT_PLAIN),
    ("txt", ContentFormat::TEXT_PLAIN),
    ("xml", ContentFormat::XML),
];

/// What clients may do with the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Write and delete them.
    pub writable: bool,
    /// Read them with group requests.
    pub groups: bool,
    /// Also write and delete them with group requests, if they are writable.
    pub groups_write: bool,
    /// How many files there may be, and how many octets, once clients write.
    pub max: Usage,
}

/// Puts the files of a folder into a server.
pub fn resources(server: &mut Server, folder: &Path, access: Access) -> Result<(), Failure> {
    let hint = "give a folder that can be read, or --demo";
    let refused = |error| Failure::usage(format!("{}: {error}", folder.display()), hint);
    let root = Arc::new(Root::open(folder).map_err(refused)?);
    // A folder that cannot be read is better found now than at the first request.
    fs::read_dir(folder).map_err(refused)?;
    let room = if access.writable {
        list::clean(&root);
        Room::of(folder, access.max)
    } else {
        Room::of(Path::new(""), access.max)
    };
    let (list, changes) = (Arc::default(), server.changes());
    let (places, writing, serial) = (Places::default(), Mutex::new(room), Serial::default());
    let groups_write = access.groups_write;
    let folder = Arc::new(Folder { root, list, changes, places, writing, serial, groups_write });
    let listed = folder.clone();
    let methods =
        if access.writable { Methods::GET | Methods::PUT | Methods::DELETE } else { Methods::GET };
    let files = Handler::later(move |request| folder.clone().file(request));
    let files = Resource::new(methods, files).subtree().hidden().observable();
    server.insert("/", if access.groups { files.multicast() } else { files });
    // In place of the server's own list, which knows only that there is a folder.
    let links = Handler::later(move |request| listed.clone().list(request));
    let links = Resource::new(Methods::GET, links).format(ContentFormat::LINK_FORMAT);
    server.insert("/.well-known/core", links.hidden().multicast());
    Ok(())
}

/// A folder that is served.
struct Folder {
    root: Arc<Root>,
    list: Arc<List>,
    changes: Changes,
    places: Places,
    /// One file takes the place of another at a time, so that conditions hold while it does.
    writing: Mutex<Room>,
    serial: Serial,
    groups_write: bool,
}

impl Folder {
    /// What a request does to a file.
    async fn file(self: Arc<Self>, request: Request) -> ResponseTemplate {
        let folder = self.clone();
        self.aside(request, move |request| folder.answer(request)).await
    }
    /// The list of the files.
    async fn list(self: Arc<Self>, request: Request) -> ResponseTemplate {
        let links = self.list.clone().current(self.root.clone()).await;
        self.aside(request, move |request| links.answer(request)).await
    }
    /// Answers in a thread of its own, so that a slow disk keeps nobody waiting. Nothing begins before the answer is
    /// waited for.
    async fn aside(
        &self,
        request: Request,
        answer: impl FnOnce(&Request) -> ResponseTemplate + Send + 'static,
    ) -> ResponseTemplate {
        let source = Source::of(request.peer.address.ip());
        match self.places.work(source, move || answer(&request)).await {
            Ok(Some(response)) => response,
            Ok(None) => unavailable("too many files are being read and written", 1),
            Err(_) => code(Code::INTERNAL_SERVER_ERROR),
        }
    }
    fn answer(&self, request: &Request) -> ResponseTemplate {
        // One forged datagram would change the files of all members. Errors leave only if the client asks for them.
        if request.multicast && request.method() != Code::GET && !self.groups_write {
            return code(Code::METHOD_NOT_ALLOWED);
        }
        let answer = match request.method() {
            Code::PUT => self.write(request),
            Code::DELETE => self.delete(request),
            _ => self.read(request),
        };
        answer.unwrap_or_else(|error| refusal(&error))
    }
    fn read(&self, request: &Request) -> io::Result<ResponseTemplate> {
        let last = request.below().last().unwrap_or_default();
        let format = format(String::from_utf8_lossy(last).as_ref().as_ref());
        let read = self.root.find(request.below()).and_then(|place| read(&place, format));
        match read {
            Err(refused) if refused.kind() == io::ErrorKind::IsADirectory => {
                Ok(error(Code::NOT_FOUND, "a folder; /.well-known/core lists the files"))
            }
            read => read,
        }
    }
    fn write(&self, request: &Request) -> io::Result<ResponseTemplate> {
        let place = self.root.find(request.below())?;
        let old = place.look()?;
        // What is refused need not be written first.
        if let Err(refused) = check_conditions(&request.message.options, old.state()?) {
            return Ok(code(refused));
        }
        let about = match &old {
            Found::File(about) => Some(about),
            _ => None,
        };
        let (len, no_room) = (request.payload().len() as u64, || {
            error(Code::INTERNAL_SERVER_ERROR, "the folder has no room for the file")
        });
        if !lock(&self.writing).admits(old.size(), len) {
            return Ok(no_room());
        }
        let unfinished = Unfinished::write(&place, request.payload(), about, &self.serial)?;
        let state = {
            let mut room = lock(&self.writing);
            let old = place.look()?;
            let (size, state) = (old.size(), old.state()?);
            if let Err(refused) = check_conditions(&request.message.options, state) {
                return Ok(code(refused));
            }
            if !room.admits(size, len) {
                return Ok(no_room());
            }
            unfinished.put()?;
            room.written(size, len);
            let path = self.tell(request);
            self.list.written(&path, len);
            state
        };
        place.sync()?;
        Ok(code(if state == State::Absent { Code::CREATED } else { Code::CHANGED }))
    }
    fn delete(&self, request: &Request) -> io::Result<ResponseTemplate> {
        let place = self.root.find(request.below())?;
        // Of a link the link goes, not what it leads to.
        let entry = self.root.entry(request.below())?;
        {
            let mut room = lock(&self.writing);
            let old = place.look()?;
            let (size, state) = (old.size(), old.state()?);
            if let Err(refused) = check_conditions(&request.message.options, state) {
                return Ok(code(refused));
            }
            // RFC 7252 s5.8.4: 2.02 whether it was there or not.
            if state == State::Absent {
                return Ok(code(Code::DELETED));
            }
            store::remove(&entry.folder, &entry.name)?;
            room.deleted(size.unwrap_or(0));
            let path = self.tell(request);
            self.list.deleted(&path);
        }
        entry.sync()?;
        Ok(code(Code::DELETED))
    }
    /// Tells observers that a file has changed; returns its path.
    fn tell(&self, request: &Request) -> String {
        let path: Vec<_> = request.below().map(String::from_utf8_lossy).collect();
        let path = format!("/{}", path.join("/"));
        self.changes.tell(&path);
        path
    }
}

fn format(path: &Path) -> ContentFormat {
    let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
    let known = FORMATS.iter().find(|(one, _)| one.eq_ignore_ascii_case(end));
    known.map_or(ContentFormat::OCTET_STREAM, |(_, format)| *format)
}

/// Reads a file, of which no more than [`FILE_MAX`] octets are ever read.
fn read(place: &Place, format: ContentFormat) -> io::Result<ResponseTemplate> {
    let mut body = Vec::new();
    for _ in 0..READINGS {
        let (mut file, about) = place.open()?;
        let size = u64::try_from(about.st_size).unwrap_or(0);
        let Some(read) = octets(&mut file, size)? else {
            return Ok(error(Code::NOT_IMPLEMENTED, "longer than 4 MiB, the limit of this server"));
        };
        body = read;
        let tag = tag(&about);
        if body.len() as u64 == size && self::tag(&fstat(&file)?) == tag {
            let content = Document { body, format }.content();
            return Ok(content.with_option(OptionNumber::ETAG, tag.as_bytes()));
        }
    }
    // Contents that change all the time have no tag that says which they were.
    Ok(Document { body, format }.content())
}

/// All octets of a file that had a size before, and may grow meanwhile; `None` past the bound.
fn octets(file: &mut impl io::Read, size: u64) -> io::Result<Option<Vec<u8>>> {
    if size > FILE_MAX {
        return Ok(None);
    }
    let mut octets = Vec::with_capacity(size as usize + 1);
    file.take(FILE_MAX + 1).read_to_end(&mut octets)?;
    Ok(Some(octets).filter(|octets| octets.len() as u64 <= FILE_MAX))
}

fn refusal(refused: &io::Error) -> ResponseTemplate {
    use io::ErrorKind as Kind;
    match refused.kind() {
        Kind::NotFound | Kind::NotADirectory | Kind::InvalidFilename => code(Code::NOT_FOUND),
        Kind::PermissionDenied | Kind::IsADirectory | Kind::ReadOnlyFilesystem => {
            code(Code::FORBIDDEN)
        }
        Kind::StorageFull | Kind::QuotaExceeded | Kind::FileTooLarge => {
            error(Code::INTERNAL_SERVER_ERROR, "the disk has no room for the file")
        }
        _ => code(Code::INTERNAL_SERVER_ERROR),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn a_file_is_served_up_to_the_bound() {
        let folder = std::env::temp_dir().join(format!("lowmesh-read-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a place for files");
        let root = Root::open(&folder).expect("it is there");
        let file = File::create(folder.join("a")).expect("ours");
        let code_at = |len: u64| {
            file.set_len(len).expect("a sparse file");
            let place = root.find([&b"a"[..]].into_iter()).expect("inside");
            let answer = read(&place, ContentFormat::OCTET_STREAM).expect("readable");
            (answer.code, answer.payload.len() as u64)
        };
        assert_eq!(code_at(FILE_MAX), (Code::CONTENT, FILE_MAX));
        assert_eq!(code_at(FILE_MAX + 1).0, Code::NOT_IMPLEMENTED);
        fs::remove_dir_all(&folder).expect("ours");
    }

    #[test]
    fn a_file_that_grows_while_it_is_read_is_read_no_further_than_the_bound() {
        let mut endless = io::repeat(7).take(2 * FILE_MAX);
        assert_eq!(octets(&mut endless, 1).expect("readable"), None);
        assert_eq!(endless.limit(), FILE_MAX - 1, "one octet past the bound says that it is past");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_whose_size_says_nothing_of_what_it_holds_has_no_tag() {
        // The kernel says 0 octets.
        let root = Root::open(Path::new("/proc/self")).expect("Linux has it");
        let place = root.find([&b"status"[..]].into_iter()).expect("Linux has it");
        let answer = read(&place, ContentFormat::TEXT_PLAIN).expect("readable");
        assert!(!answer.payload.is_empty() && answer.options.get(OptionNumber::ETAG).is_none());
    }

    #[test]
    fn the_end_of_a_name_says_the_format() {
        assert_eq!(format(Path::new("a/b.JSON")), ContentFormat::JSON);
        assert_eq!(format(Path::new("a/b")), ContentFormat::OCTET_STREAM);
        assert_eq!(format(Path::new("firmware.bin")), ContentFormat::OCTET_STREAM);
    }
}
