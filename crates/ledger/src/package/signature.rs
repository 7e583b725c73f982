//! Proves who made a package: an Ed25519 signature over the digest of its manifest, which holds the root.

use std::fmt;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt};
use std::path::{Path, PathBuf};

use aec_base::digest::Digest;
use aec_base::file::{Links, open_regular, read_text};
use aec_base::problem::Problem;
use aec_base::secret::Secret;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signer as _, SigningKey, VerifyingKey};
use serde::{Deserialize, Serialize};

use super::finding;

/// Prefix of the signed bytes, so that our signatures are not valid for any other purpose.
const DOMAIN: &[u8] = b"aec-bench run package 1\0";

const PRIVATE: &str = "aec-bench-ed25519-private:";
const PUBLIC: &str = "aec-bench-ed25519:";
const KEY_FILE_LIMIT: u64 = 4096;

/// The signing key, which is never printed.
pub struct PrivateKey(SigningKey);

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

/// `signature.json`, the last member of a signed package.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Signature {
    pub(super) schema_version: u32,
    /// `ed25519`.
    algorithm: String,
    key: String,
    /// Digest of `package.json`.
    manifest: Digest,
    /// 64 bytes in base64.
    #[serde(rename = "signature")]
    bytes: String,
}

fn message(manifest: Digest) -> Vec<u8> {
    [DOMAIN, manifest.bytes()].concat()
}

impl PrivateKey {
    /// Reads a key file that only its owner may read.
    pub fn read(path: &Path) -> Result<Self, Problem> {
        let wrong = |what: String| finding(101, what).in_file(path);
        let unreadable = |error: aec_base::file::ReadError| {
            wrong(format!("the key cannot be read: {error}")).fix(error.fix())
        };
        let (_, metadata) = open_regular(path, KEY_FILE_LIMIT, Links::Follow).map_err(unreadable)?;
        if metadata.permissions().mode() & 0o077 != 0 {
            return Err(wrong("others may read the key".into())
                .why("anyone who reads it can sign as you")
                .fix("make it yours alone: chmod 600"));
        }
        let text = Secret::new(read_text(path, KEY_FILE_LIMIT, Links::Follow).map_err(unreadable)?);
        let bytes = text.reveal().trim().strip_prefix(PRIVATE).and_then(decode);
        bytes.map(|bytes| Self(SigningKey::from_bytes(&bytes))).ok_or_else(|| {
            wrong("this is not a private key of aec-bench".into())
                .fix("make one with `aec-bench runs keygen`")
        })
    }

    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    pub(super) fn sign(&self, manifest: Digest) -> Signature {
        Signature {
            schema_version: super::SCHEMA_VERSION,
            algorithm: "ed25519".into(),
            key: self.public().to_string(),
            manifest,
            bytes: STANDARD.encode(self.0.sign(&message(manifest)).to_bytes()),
        }
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

impl Signature {
    /// The text of `signature.json`: indented JSON with a final line break.
    pub(super) fn to_json(&self) -> serde_json::Result<String> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        Ok(text)
    }

    /// The key that made the signature, if it is valid for this manifest.
    pub(super) fn check(&self, manifest: Digest) -> Option<PublicKey> {
        let key = PublicKey::parse(&self.key)?;
        let bytes: [u8; 64] = STANDARD.decode(&self.bytes).ok()?.try_into().ok()?;
        let signature = ed25519_dalek::Signature::from_bytes(&bytes);
        let named = self.algorithm == "ed25519" && self.manifest == manifest;
        (named && key.0.verify_strict(&message(manifest), &signature).is_ok()).then_some(key)
    }
}

impl PublicKey {
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = text.trim().strip_prefix(PUBLIC).and_then(decode)?;
        VerifyingKey::from_bytes(&bytes).ok().filter(|key| !key.is_weak()).map(Self)
    }

    /// Reads a key from the user: its text, or a file that holds it.
    pub fn given(text: &str, file: &Path) -> Result<Self, Problem> {
        const FIX: &str = "give the text that `aec-bench runs keygen` printed, or its .pub file";
        if text.starts_with(PUBLIC) {
            return Self::parse(text).ok_or_else(|| finding(101, "this is not a public key").fix(FIX));
        }
        let held = read_text(file, KEY_FILE_LIMIT, Links::Follow).map_err(|error| {
            finding(101, format!("the public key cannot be read: {error}")).fix(FIX).in_file(file)
        })?;
        Self::parse(&held).ok_or_else(|| finding(101, "this file holds no public key").fix(FIX).in_file(file))
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PUBLIC}{}", STANDARD.encode(self.0.to_bytes()))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn decode(text: &str) -> Option<[u8; 32]> {
    STANDARD.decode(text).ok()?.try_into().ok()
}

/// Generates a key: the private half in `path`, readable by its owner only, the public half in `path.pub`. Existing
/// files are not replaced.
pub fn generate(path: &Path) -> Result<(PublicKey, PathBuf), Problem> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".pub");
    let beside = PathBuf::from(beside);
    for place in [path, &beside] {
        if place.symlink_metadata().is_ok() {
            return Err(finding(101, "there is already a file")
                .why("a key that is overwritten is lost")
                .fix("choose another name")
                .in_file(place));
        }
    }
    let mut bytes = [0; 32];
    let random = fs_err::File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut bytes));
    random.map_err(|error| {
        finding(101, format!("no randomness for a key: {error}"))
            .fix("run this on a machine with /dev/urandom")
    })?;
    let key = PrivateKey(SigningKey::from_bytes(&bytes));
    let text = Secret::new(format!("{PRIVATE}{}\n", STANDARD.encode(bytes)));
    write_new(path, 0o600, text.reveal())?;
    write_new(&beside, 0o644, &format!("{}\n", key.public()))?;
    Ok((key.public(), beside))
}

fn write_new(path: &Path, mode: u32, text: &str) -> Result<(), Problem> {
    let opened = std::fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    let written = opened.and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()));
    written.map_err(|error| {
        finding(101, format!("the key cannot be written: {error}"))
            .fix("check the path and its permissions")
            .in_file(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_holds_for_one_key_and_one_manifest() {
        // The first test vector of RFC 8032.
        let secret = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
        let mut bytes = [0; 32];
        for (byte, index) in bytes.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(&secret[index..index + 2], 16).unwrap();
        }
        let key = PrivateKey(SigningKey::from_bytes(&bytes));
        assert_eq!(
            key.public().to_string(),
            "aec-bench-ed25519:11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
        );
        assert_eq!(PublicKey::parse(&key.public().to_string()), Some(key.public()));
        let manifest = Digest::of(b"manifest");
        let signature = key.sign(manifest);
        assert_eq!(signature.check(manifest), Some(key.public()));
        assert_eq!(signature.check(Digest::of(b"other")), None);
        let other = PrivateKey(SigningKey::from_bytes(&[7; 32]));
        let lent = Signature { key: other.public().to_string(), ..signature.clone() };
        assert_eq!(lent.check(manifest), None);
        let renamed = Signature { algorithm: "none".into(), ..signature.clone() };
        assert_eq!(renamed.check(manifest), None);
        for text in ["", "AAAA", "not base64"] {
            let cut = Signature { bytes: text.into(), ..signature.clone() };
            assert_eq!(cut.check(manifest), None, "{text}");
        }
        // A key of small order, for which many forged signatures are valid.
        assert_eq!(PublicKey::parse(&format!("{PUBLIC}{}", STANDARD.encode([0; 32]))), None);
        assert_eq!(format!("{key:?}"), "[redacted]");
    }

    #[test]
    fn keys_are_made_once_and_read_by_their_owner() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        let (public, beside) = generate(&path).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(PrivateKey::read(&path).unwrap().public(), public);
        assert_eq!(PublicKey::given("key.pub", &beside).unwrap(), public);
        assert_eq!(PublicKey::given(&public.to_string(), Path::new("")).unwrap(), public);
        let before = fs_err::read(&path).unwrap();
        assert!(generate(&path).is_err());
        fs_err::remove_file(&path).unwrap();
        assert!(generate(&path).is_err(), "the public half is in the way");
        fs_err::write(&path, &before).unwrap();
        fs_err::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        assert!(PrivateKey::read(&path).unwrap_err().fix.unwrap().contains("chmod 600"));
        assert!(PublicKey::given("key", &path).is_err(), "a private key is no public one");
        assert!(PrivateKey::read(&beside).is_err());
    }
}
