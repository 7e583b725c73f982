//! Writing archives.

use std::io::{self, Read, Write};

use tar::{EntryType, Header};

use crate::digest::{self, Digest};

/// Higher compression levels take much longer and gain little on repetitive text.
const LEVEL: i32 = 6;

const BLOCK: u64 = 512;

/// Whether a name fits into the header of a member.
pub fn fits(name: &str) -> bool {
    name.len() <= 100 || Header::new_ustar().set_path(name).is_ok()
}

/// Writes an archive. Only one thread compresses, so the bytes do not depend on the machine.
pub struct Writer<W: Write> {
    encoder: zstd::Encoder<'static, W>,
}

impl<W: Write> Writer<W> {
    pub fn new(to: W) -> io::Result<Self> {
        let mut encoder = zstd::Encoder::new(to, LEVEL)?;
        encoder.include_checksum(true)?;
        Ok(Self { encoder })
    }

    /// Adds a file of `size` bytes and returns the digest of its content. Content of another length is an error.
    ///
    /// Only the name, the size and the executable bit vary between headers; all other fields are constant.
    pub fn append(
        &mut self,
        name: &str,
        executable: bool,
        size: u64,
        content: impl Read,
    ) -> io::Result<Digest> {
        let mut header = Header::new_ustar();
        header.set_path(name)?;
        header.set_mode(if executable { 0o755 } else { 0o644 });
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_entry_type(EntryType::Regular);
        header.set_size(size);
        header.set_cksum();
        self.encoder.write_all(header.as_bytes())?;
        let (digest, length) = digest::copy(content, size, |piece| self.encoder.write_all(piece))?;
        if length != size {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, format!("`{name}` became shorter")));
        }
        self.pad(size.next_multiple_of(BLOCK) - size)?;
        Ok(digest)
    }

    pub fn finish(mut self) -> io::Result<W> {
        self.pad(2 * BLOCK)?;
        let mut to = self.encoder.finish()?;
        to.flush()?;
        Ok(to)
    }

    fn pad(&mut self, length: u64) -> io::Result<()> {
        io::copy(&mut io::repeat(0).take(length), &mut self.encoder).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that returns only a few bytes at a time.
    struct Trickle<'a>(&'a [u8], usize);

    impl Read for Trickle<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(buffer.len());
            self.0.take(count as u64).read(buffer).inspect(|read| self.0 = &self.0[*read..])
        }
    }

    fn noise(length: usize) -> Vec<u8> {
        let mut state = 1_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_le_bytes()[3] & 0x3f
        };
        (0..length).map(|_| next()).collect()
    }

    #[test]
    fn the_bytes_do_not_depend_on_how_content_arrives() {
        let content = noise(700_000);
        let archive = |piece: usize| {
            let mut writer = Writer::new(Vec::new()).unwrap();
            let digest = writer.append("a", false, 700_000, Trickle(&content, piece)).unwrap();
            assert_eq!(digest, Digest::of(&content));
            writer.append("b/c", true, 3, &b"abc"[..]).unwrap();
            writer.finish().unwrap()
        };
        let whole = archive(usize::MAX);
        for piece in [1, 511, 4096, 131_072] {
            assert!(archive(piece) == whole, "{piece}");
        }
        let tar = zstd::decode_all(whole.as_slice()).unwrap();
        assert_eq!(tar.len() as u64, (512 + 700_416) + (512 + 512) + 1024);
    }

    #[test]
    fn content_of_another_length_is_an_error() {
        for size in [2, 4] {
            assert!(Writer::new(Vec::new()).unwrap().append("a", false, size, &b"abc"[..]).is_err());
        }
    }

    #[test]
    fn names_that_fit() {
        assert!(fits(&"a".repeat(100)) && fits(&format!("{}/{}", "a".repeat(150), "b".repeat(100))));
        assert!(!fits(&"a".repeat(101)) && !fits(&format!("a/{}", "b".repeat(101))));
    }
}
