//! The files of a folder as resources: GET with entity tags and formats, the list of files, and if allowed PUT and
//! DELETE.
//!
//! A path of a request names a file by its segments, none of which can lead out of the folder: not `..`, not a
//! separator inside a segment, not a link to elsewhere. Hidden files are not served.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use lowmesh_coap::ResponseTemplate;
use lowmesh_coap::resource::{Methods, Resource, Route, Router, State, check_conditions};
use lowmesh_net::server::{Changes, Handler, Request, Server};
use lowmesh_wire::coap::{Code, ContentFormat};

use super::reply::{Document, code, error, lock};
use crate::failure::Failure;

/// The longest file that is served, octets: what a server keeps of representations whose later blocks may be asked for.
const FILE_MAX: u64 = 4 << 20;
/// Files that are listed, and folders in folders that are looked into.
const LISTED_MAX: usize = 1000;
const DEPTH_MAX: usize = 8;
/// What a file is while it is being written.
const UNFINISHED: &str = ".lowmesh-unfinished";

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

/// Puts the files of a folder into a server.
pub fn resources(server: &mut Server, folder: &Path, writable: bool) -> Result<(), Failure> {
    let hint = "give a folder that can be read, or --demo";
    let refused = |error| Failure::usage(format!("{}: {error}", folder.display()), hint);
    let root = folder.canonicalize().map_err(refused)?;
    // A folder that cannot be read is better found now than at the first request.
    fs::read_dir(&root).map_err(refused)?;
    let folder = Arc::new(Folder { root, changes: server.changes(), writing: Mutex::new(()) });
    let methods =
        if writable { Methods::GET | Methods::PUT | Methods::DELETE } else { Methods::GET };
    let files = handler(&folder, Folder::answer);
    server.insert("/", Resource::new(methods, files).subtree().hidden().observable());
    // In place of the server's own list, which knows only that there is a folder.
    let list = handler(&folder, Folder::list);
    let list = Resource::new(Methods::GET, list).format(ContentFormat::LINK_FORMAT);
    server.insert("/.well-known/core", list.hidden().multicast());
    Ok(())
}

/// Files are read aside, so that a slow disk keeps nobody waiting.
fn handler(folder: &Arc<Folder>, answer: fn(&Folder, &Request) -> ResponseTemplate) -> Handler {
    let folder = folder.clone();
    Handler::later(move |request| {
        let folder = folder.clone();
        let answered = tokio::task::spawn_blocking(move || answer(&folder, &request));
        async { answered.await.unwrap_or(code(Code::INTERNAL_SERVER_ERROR)) }
    })
}

/// A folder whose real path is known.
struct Folder {
    root: PathBuf,
    changes: Changes,
    /// One file is written at a time.
    writing: Mutex<()>,
}

impl Folder {
    fn answer(&self, request: &Request) -> ResponseTemplate {
        let Some(path) = self.place(request) else { return code(Code::NOT_FOUND) };
        let answer = match request.method() {
            Code::PUT => self.write(&path, request),
            Code::DELETE => self.delete(&path, request),
            _ => read(&path),
        };
        answer.unwrap_or_else(|error| refusal(&error))
    }
    /// Where a path leads, if that is inside; there need not be anything.
    fn place(&self, request: &Request) -> Option<PathBuf> {
        let mut path = self.root.clone();
        for segment in request.below() {
            path.push(str::from_utf8(segment).ok().filter(|name| is_name(name))?);
        }
        // What is there is where it says, or is reached through links that stay inside.
        let here = match path.canonicalize() {
            Ok(here) => here,
            Err(_) => path.parent()?.canonicalize().ok()?,
        };
        here.starts_with(&self.root).then_some(path)
    }
    /// Puts a file in the place of another in one step.
    fn write(&self, path: &Path, request: &Request) -> io::Result<ResponseTemplate> {
        let _alone = lock(&self.writing);
        let state = state(path)?;
        if let Err(refused) = check_conditions(&request.message.options, state) {
            return Ok(code(refused));
        }
        let unfinished = path.with_file_name(UNFINISHED);
        fs::write(&unfinished, request.payload())?;
        fs::rename(&unfinished, path)?;
        self.tell(request);
        Ok(code(if state == State::Absent { Code::CREATED } else { Code::CHANGED }))
    }
    fn delete(&self, path: &Path, request: &Request) -> io::Result<ResponseTemplate> {
        let _alone = lock(&self.writing);
        let state = state(path)?;
        if let Err(refused) = check_conditions(&request.message.options, state) {
            return Ok(code(refused));
        }
        // RFC 7252 s5.8.4: 2.02 whether it was there or not.
        if state != State::Absent {
            fs::remove_file(path)?;
            self.tell(request);
        }
        Ok(code(Code::DELETED))
    }
    fn tell(&self, request: &Request) {
        let path: Vec<_> = request.below().map(String::from_utf8_lossy).collect();
        self.changes.tell(&path.join("/"));
    }
    /// The list of all files, narrowed by the request's query (RFC 6690 s4.1).
    fn list(&self, request: &Request) -> ResponseTemplate {
        let mut files = Files { links: Router::new(), len: 0 };
        files.add(&self.root, "", DEPTH_MAX);
        match files.links.route(&request.message, request.multicast) {
            Route::Answer(response) => response,
            Route::Resource { .. } | Route::Ignore => code(Code::NOT_FOUND),
        }
    }
}

/// A file or a folder, by one segment of a path.
fn is_name(segment: &str) -> bool {
    !segment.is_empty() && !segment.starts_with('.') && !segment.contains(['/', '\\', ':', '\0'])
}

fn format(path: &Path) -> ContentFormat {
    let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
    let known = FORMATS.iter().find(|(one, _)| one.eq_ignore_ascii_case(end));
    known.map_or(ContentFormat::OCTET_STREAM, |(_, format)| *format)
}

fn read(path: &Path) -> io::Result<ResponseTemplate> {
    let about = fs::metadata(path)?;
    if about.is_dir() {
        return Ok(error(Code::NOT_FOUND, "a folder; /.well-known/core lists the files"));
    }
    if about.len() > FILE_MAX {
        return Ok(error(Code::NOT_IMPLEMENTED, "longer than the 4 MiB that are served"));
    }
    Ok(Document { body: fs::read(path)?, format: format(path) }.tagged())
}

/// What is at a place, for the conditions of a request.
fn state(path: &Path) -> io::Result<State> {
    match fs::read(path) {
        Ok(body) => Ok(State::Present(Some(Document { body, format: format(path) }.tag()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(State::Absent),
        Err(error) => Err(error),
    }
}

fn refusal(error: &io::Error) -> ResponseTemplate {
    use io::ErrorKind as Kind;
    code(match error.kind() {
        Kind::NotFound | Kind::NotADirectory => Code::NOT_FOUND,
        Kind::PermissionDenied | Kind::IsADirectory | Kind::ReadOnlyFilesystem => Code::FORBIDDEN,
        _ => Code::INTERNAL_SERVER_ERROR,
    })
}

/// Links to files, at most so many.
struct Files {
    links: Router<()>,
    len: usize,
}

impl Files {
    /// Adds the files of a folder, and of those in it. Links of the file system are not followed here.
    fn add(&mut self, folder: &Path, path: &str, depth: usize) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        let mut entries: Vec<_> = entries.flatten().collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let (name, about) = (entry.file_name(), entry.metadata());
            let (Some(name), Ok(about)) = (name.to_str().filter(|name| is_name(name)), about)
            else {
                continue;
            };
            let path = format!("{path}/{name}");
            if about.is_dir() && depth > 0 {
                self.add(&entry.path(), &path, depth - 1);
            } else if about.is_file() && self.len < LISTED_MAX {
                self.len += 1;
                let link = Resource::new(Methods::GET, ()).format(format(&entry.path()));
                self.links.insert(&path, link.attribute("sz", &about.len().to_string()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_that_leads_elsewhere_is_no_name() {
        for name in ["a.txt", "b", "with blank", "ü", "a..b"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", ".", "..", ".hidden", "a/b", "..\\a", "C:", "a\0"] {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn the_end_of_a_name_says_the_format() {
        assert_eq!(format(Path::new("a/b.JSON")), ContentFormat::JSON);
        assert_eq!(format(Path::new("a/b")), ContentFormat::OCTET_STREAM);
        assert_eq!(format(Path::new("firmware.bin")), ContentFormat::OCTET_STREAM);
    }
}
