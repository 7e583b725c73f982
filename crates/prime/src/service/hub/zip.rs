//! Writes zip archives with the same bytes for the same files: fixed times, fixed permissions, given order.

use std::io::Write as _;

use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};

/// 1980-01-01, the earliest date of a zip archive.
const DATE: u16 = (1 << 5) | 1;
/// Names are UTF-8.
const FLAGS: u16 = 1 << 11;
const DEFLATED: u16 = 8;
/// Version 2.0 can read it; made on Unix, so that permissions count.
const NEEDED: u16 = 20;
const MADE_BY: u16 = (3 << 8) | NEEDED;

/// Too many or too large files for the plain format.
#[derive(Debug, thiserror::Error)]
#[error("the archive would have more than 65535 files or 4 GiB")]
pub(crate) struct ZipTooLarge;

#[derive(Debug, Default)]
pub(crate) struct Zip {
    bytes: Vec<u8>,
    directory: Vec<u8>,
    count: u16,
}

impl Zip {
    pub(crate) fn add(&mut self, name: &str, content: &[u8], executable: bool) -> Result<(), ZipTooLarge> {
        let mut crc = Crc::new();
        crc.update(content);
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(6));
        // Writing into memory cannot fail.
        let packed = encoder.write_all(content).and_then(|()| encoder.finish()).map_err(|_| ZipTooLarge)?;
        let offset = u32::try_from(self.bytes.len()).map_err(|_| ZipTooLarge)?;
        let name_length = u16::try_from(name.len()).map_err(|_| ZipTooLarge)?;
        let mut facts = Vec::with_capacity(26);
        put(&mut facts, &[NEEDED, FLAGS, DEFLATED, 0, DATE]);
        for number in [crc.sum(), length(&packed)?, length(content)?] {
            facts.extend_from_slice(&number.to_le_bytes());
        }
        put(&mut facts, &[name_length, 0]);

        self.bytes.extend_from_slice(b"PK\x03\x04");
        self.bytes.extend_from_slice(&facts);
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.extend_from_slice(&packed);

        let mode: u32 = if executable { 0o100_755 } else { 0o100_644 };
        self.directory.extend_from_slice(b"PK\x01\x02");
        put(&mut self.directory, &[MADE_BY]);
        self.directory.extend_from_slice(&facts);
        put(&mut self.directory, &[0, 0, 0]);
        self.directory.extend_from_slice(&(mode << 16).to_le_bytes());
        self.directory.extend_from_slice(&offset.to_le_bytes());
        self.directory.extend_from_slice(name.as_bytes());
        self.count = self.count.checked_add(1).ok_or(ZipTooLarge)?;
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<Vec<u8>, ZipTooLarge> {
        let start = length(&self.bytes)?;
        let size = length(&self.directory)?;
        self.bytes.append(&mut self.directory);
        self.bytes.extend_from_slice(b"PK\x05\x06");
        put(&mut self.bytes, &[0, 0, self.count, self.count]);
        self.bytes.extend_from_slice(&size.to_le_bytes());
        self.bytes.extend_from_slice(&start.to_le_bytes());
        put(&mut self.bytes, &[0]);
        Ok(self.bytes)
    }
}

fn length(bytes: &[u8]) -> Result<u32, ZipTooLarge> {
    u32::try_from(bytes.len()).map_err(|_| ZipTooLarge)
}

fn put(bytes: &mut Vec<u8>, numbers: &[u16]) {
    for number in numbers {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
}
