//! What all cases share: a folder, keys, certificates, a long body.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Result;

use crate::process;

/// Octets of the long body: some twenty blocks.
const BODY_LEN: usize = 20_000;
/// Identity and key of DTLS.
pub const IDENTITY: &str = "lowmesh";
pub const KEY: &str = "a shared secret";
/// The security context of OSCORE: RFC 8613 appendix C.1.1 with IDs of our own.
pub const SECRET: &str = "0102030405060708090a0b0c0d0e0f10";
pub const SALT: &str = "9e7ca92223786340";
pub const CLIENT_ID: &str = "01";
pub const SERVER_ID: &str = "02";

/// A folder with everything in it; it goes with the value.
#[derive(Debug)]
pub struct Material {
    folder: PathBuf,
    /// The octets of `body`.
    pub body: Vec<u8>,
    copies: AtomicU32,
    /// Whether `cert.pem` and `key.pem` could be made.
    pub certificates: bool,
}

impl Material {
    /// Makes new material in a folder of its own.
    pub fn make() -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("lowmesh-interop-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        // No two blocks are the same.
        let body: Vec<u8> = (0..BODY_LEN).map(|at| (at % 251) as u8).collect();
        let mut material = Self { folder, body, copies: AtomicU32::new(0), certificates: false };
        fs::write(material.path("body"), &material.body)?;
        material.protect("client", CLIENT_ID, SERVER_ID, SALT)?;
        material.protect("server", SERVER_ID, CLIENT_ID, SALT)?;
        material.certificates = material.certify();
        Ok(material)
    }
    /// The whole path of `name`.
    pub fn path(&self, name: &str) -> String {
        self.folder.join(name).to_string_lossy().into_owned()
    }
    /// The whole path of a file that nobody else writes.
    pub fn copy(&self) -> String {
        self.path(&format!("copy-{}", self.copies.fetch_add(1, Ordering::Relaxed)))
    }
    /// Writes the security context of one end, for libcoap and us as `END.conf`, for aiocoap as the folder `END`.
    pub fn protect(&self, end: &str, sender: &str, recipient: &str, salt: &str) -> Result<()> {
        let settings = serde_json::json!({
            "sender-id_hex": sender, "recipient-id_hex": recipient, "secret_hex": SECRET, "salt_hex": salt,
        });
        fs::create_dir(self.path(end))?;
        fs::write(self.path(&format!("{end}/settings.json")), settings.to_string())?;
        let context = format!(
            "master_secret,hex,\"{SECRET}\"\nmaster_salt,hex,\"{salt}\"\n\
             sender_id,hex,\"{sender}\"\nrecipient_id,hex,\"{recipient}\"\n"
        );
        fs::write(self.path(&format!("{end}.conf")), context)?;
        Ok(())
    }
    /// Makes a certificate that is its own authority.
    fn certify(&self) -> bool {
        let (key, cert) = (self.path("key.pem"), self.path("cert.pem"));
        let args = [
            &[
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
                "-nodes",
            ][..],
            &["-subj", "/CN=localhost", "-days", "2", "-keyout", &key, "-out", &cert],
            &["-addext", "subjectAltName=DNS:localhost,IP:::1"],
            &["-addext", "basicConstraints=critical,CA:FALSE"],
        ]
        .concat();
        process::read(process::command("openssl", &args)).is_ok()
    }
}

impl Drop for Material {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.folder);
    }
}
