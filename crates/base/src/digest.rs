//! Digests of content: SHA-256, written as `sha256:` and 64 hexadecimal digits.

use std::fmt;
use std::io::{self, Read};
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", extend("pattern" = "^sha256:[0-9a-f]{64}$"))]
pub struct Digest([u8; 32]);

impl Digest {
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The 64 hexadecimal digits.
    pub fn hex(&self) -> String {
        self.0
            .iter()
            .flat_map(|byte| [byte >> 4, byte & 15])
            .filter_map(|digit| char::from_digit(digit.into(), 16))
            .collect()
    }
}

/// Makes a digest of several parts. Each part is preceded by its length, so different lists of parts never hash the
/// same bytes.
#[derive(Default)]
pub struct Hasher(Sha256);

impl Hasher {
    pub fn part(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

/// A reader that computes the digest of everything that passes through it.
pub struct Reading<R> {
    from: R,
    hasher: Sha256,
}

impl<R: Read> Reading<R> {
    pub fn new(from: R) -> Self {
        Self { from, hasher: Sha256::new() }
    }

    pub fn finish(self) -> Digest {
        Digest(self.hasher.finalize().into())
    }
}

impl<R: Read> Read for Reading<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(buffer)?;
        self.hasher.update(&buffer[..count]);
        Ok(count)
    }
}

/// Reads to the end and hands each piece to `piece`; returns the digest and the length. More than `limit` bytes are
/// an error.
pub fn copy(
    mut from: impl Read,
    limit: u64,
    mut piece: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<(Digest, u64)> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0_u8; 64 * 1024];
    let mut total = 0_u64;
    loop {
        let count = from.read(&mut buffer)?;
        if count == 0 {
            return Ok((Digest(hasher.finalize().into()), total));
        }
        total += count as u64;
        if total > limit {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("larger than {limit} bytes")));
        }
        hasher.update(&buffer[..count]);
        piece(&buffer[..count])?;
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<[u8; 32]> for Digest {
    fn from(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

impl FromStr for Digest {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "is not sha256: and 64 hexadecimal digits";
        let hex =
            text.strip_prefix("sha256:").filter(|hex| hex.len() == 64 && hex.is_ascii()).ok_or(WRONG)?;
        let mut bytes = [0; 32];
        for (byte, index) in bytes.iter_mut().zip((0..64).step_by(2)) {
            let pair = &hex[index..index + 2];
            if pair.bytes().any(|digit| digit.is_ascii_uppercase()) {
                return Err(WRONG);
            }
            *byte = u8::from_str_radix(pair, 16).map_err(|_| WRONG)?;
        }
        Ok(Self(bytes))
    }
}

impl TryFrom<String> for Digest {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_digests_and_their_text() {
        // The published digest of "abc".
        let text = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Digest::of(b"abc").to_string(), text);
        assert_eq!(Digest::try_from(text.to_owned()).unwrap(), Digest::of(b"abc"));
        assert_eq!(Digest::from(*Digest::of(b"abc").bytes()), Digest::of(b"abc"));
        for bad in
            ["", "abc", "sha256:", &text.to_uppercase(), &text.replace("sha256", "sha512"), &text[..70]]
        {
            assert!(Digest::try_from(bad.to_owned()).is_err(), "{bad}");
        }
    }

    #[test]
    fn parts_are_framed() {
        let hash = |parts: &[&[u8]]| {
            let mut hasher = Hasher::default();
            for part in parts {
                hasher.part(part);
            }
            hasher.finish()
        };
        assert_ne!(hash(&[b"a", b"bc"]), hash(&[b"ab", b"c"]));
        assert_ne!(hash(&[b"abc"]), hash(&[b"abc", b""]));
    }

    #[test]
    fn reading_makes_a_digest() {
        let mut reading = Reading::new(&b"abc"[..]);
        assert_eq!(io::read_to_string(&mut reading).unwrap(), "abc");
        assert_eq!(reading.finish(), Digest::of(b"abc"));
    }

    #[test]
    fn copying_is_bounded() {
        let mut kept = Vec::new();
        let mut keep = |piece: &[u8]| {
            kept.extend_from_slice(piece);
            Ok(())
        };
        assert_eq!(copy(&b"abc"[..], 3, &mut keep).unwrap(), (Digest::of(b"abc"), 3));
        assert!(copy(&b"abcd"[..], 3, &mut keep).is_err());
    }
}
