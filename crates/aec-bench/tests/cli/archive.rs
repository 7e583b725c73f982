//! Archives that tests can manipulate: a tar archive, member by member, compressed with Zstandard.

/// A tar archive, member by member, so that a test can falsify any part of it.
#[derive(Clone)]
pub(crate) struct Archive {
    pub(crate) members: Vec<Member>,
}

#[derive(Clone)]
pub(crate) struct Member {
    header: [u8; 512],
    pub(crate) content: Vec<u8>,
}

impl Member {
    pub(crate) fn file(name: &str, content: &[u8]) -> Self {
        let mut member = Self { header: [0; 512], content: content.to_vec() };
        member.put(0, name.as_bytes());
        member.put(100, b"0000644\0");
        member.put(108, b"0000000\0");
        member.put(116, b"0000000\0");
        member.put(124, format!("{:011o}\0", content.len()).as_bytes());
        member.put(136, b"00000000000\0");
        member.put(156, b"0");
        member.put(257, b"ustar\x0000");
        member
    }

    pub(crate) fn kind(name: &str, kind: u8, link: &str) -> Self {
        let mut member = Self::file(name, b"");
        member.put(156, &[kind]);
        member.put(157, link.as_bytes());
        member
    }

    /// Writes into the header. The checksum is computed when the archive is written.
    pub(crate) fn put(&mut self, at: usize, bytes: &[u8]) {
        self.header[at..at + bytes.len()].copy_from_slice(bytes);
    }

    pub(crate) fn name(&self) -> String {
        let end = self.header[..100].iter().position(|byte| *byte == 0).unwrap_or(100);
        String::from_utf8(self.header[..end].to_vec()).unwrap()
    }
}

impl Archive {
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let tar = zstd::decode_all(bytes).unwrap();
        let mut members = Vec::new();
        let mut at = 0;
        while tar[at] != 0 {
            let header: [u8; 512] = tar[at..at + 512].try_into().unwrap();
            let size = std::str::from_utf8(&header[124..135]).unwrap();
            let size = usize::from_str_radix(size, 8).unwrap();
            members.push(Member { header, content: tar[at + 512..at + 512 + size].to_vec() });
            at += 512 + size.div_ceil(512) * 512;
        }
        Self { members }
    }

    pub(crate) fn tar(&self) -> Vec<u8> {
        let mut tar = Vec::new();
        for member in &self.members {
            let mut header = member.header;
            header[148..156].copy_from_slice(b"        ");
            let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
            header[148..156].copy_from_slice(format!("{sum:07o}\0").as_bytes());
            tar.extend(header);
            tar.extend(&member.content);
            tar.resize(tar.len().div_ceil(512) * 512, 0);
        }
        tar.extend([0; 1024]);
        tar
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        compress(&self.tar())
    }

    /// The archive with further members at its end.
    pub(crate) fn with(&self, members: impl IntoIterator<Item = Member>) -> Vec<u8> {
        let mut archive = self.clone();
        archive.members.extend(members);
        archive.bytes()
    }
}

pub(crate) fn compress(tar: &[u8]) -> Vec<u8> {
    zstd::encode_all(tar, 1).unwrap()
}
