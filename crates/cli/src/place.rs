//! Places for output: checked before anything runs or is asked.

use std::path::Path;

use nix::unistd::{AccessFlags, access};

/// Why no file can be written to `file`, if that can be known beforehand.
pub fn check_file(file: &Path) -> Result<(), &'static str> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    match file.metadata() {
        Ok(about) if about.is_dir() => Err("it is a folder"),
        Ok(_) if !is_writable(file) => Err("it is read-only"),
        Ok(_) => Ok(()),
        Err(_) if file.file_name().is_none() => Err("it is not the name of a file"),
        Err(_) if !folder.is_dir() => Err("its folder does not exist"),
        Err(_) => check_folder(folder).map_err(|_| "its folder is read-only"),
    }
}

/// Why nothing can be written into `folder`.
pub fn check_folder(folder: &Path) -> Result<(), &'static str> {
    if is_writable(folder) { Ok(()) } else { Err("it is read-only") }
}

fn is_writable(path: &Path) -> bool {
    access(path, AccessFlags::W_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_cannot_be_written_says_why() {
        let folder = std::env::temp_dir();
        assert_eq!(check_file(&folder), Err("it is a folder"));
        assert_eq!(check_file(&folder.join("no/such/file")), Err("its folder does not exist"));
        assert_eq!(check_file(&folder.join("a-new-file")), Ok(()));
        assert_eq!(check_folder(Path::new("/proc/no-such-folder")), Err("it is read-only"));
    }
}
