// SPDX-License-Identifier: GPL-2.0
//! The "newc" cpio format, which is what the kernel unpacks as an initramfs.

/// An archive under construction.
pub struct Archive {
    bytes: Vec<u8>,
    inode: u32,
}

/// What an entry is, with its permissions.
#[derive(Clone, Copy)]
enum Kind {
    Directory,
    File(u32),
    Symlink,
    CharacterDevice { major: u32, minor: u32 },
}

impl Kind {
    fn mode(self) -> u32 {
        match self {
            Kind::Directory => 0o040_755,
            Kind::File(permissions) => 0o100_000 | permissions,
            Kind::Symlink => 0o120_777,
            Kind::CharacterDevice { .. } => 0o020_600,
        }
    }

    fn device(self) -> (u32, u32) {
        match self {
            Kind::CharacterDevice { major, minor } => (major, minor),
            _ => (0, 0),
        }
    }
}

impl Archive {
    /// Starts an empty archive.
    pub fn new() -> Self {
        Archive {
            bytes: Vec::new(),
            inode: 0,
        }
    }

    /// Adds a directory; its parents must have been added before.
    pub fn directory(&mut self, path: &str) {
        self.entry(path, Kind::Directory, &[]);
    }

    /// Adds a file with the given permissions.
    pub fn file(&mut self, path: &str, permissions: u32, content: &[u8]) {
        self.entry(path, Kind::File(permissions), content);
    }

    /// Adds a symbolic link.
    pub fn symlink(&mut self, path: &str, target: &str) {
        self.entry(path, Kind::Symlink, target.as_bytes());
    }

    /// Adds a character device node.
    pub fn character_device(&mut self, path: &str, major: u32, minor: u32) {
        self.entry(path, Kind::CharacterDevice { major, minor }, &[]);
    }

    /// Ends the archive and returns its bytes.
    pub fn finish(mut self) -> Vec<u8> {
        self.header("TRAILER!!!", 0, (0, 0), 0, 1);
        self.bytes
    }

    fn entry(&mut self, path: &str, kind: Kind, content: &[u8]) {
        let path = path.trim_start_matches('/');
        self.header(path, kind.mode(), kind.device(), content.len(), 1);
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn header(&mut self, path: &str, mode: u32, device: (u32, u32), size: usize, links: u32) {
        self.inode += 1;
        let fields = [
            self.inode as usize,
            mode as usize,
            0, // uid
            0, // gid
            links as usize,
            0, // modification time
            size,
            0, // device of the file system, major and minor
            0,
            device.0 as usize,
            device.1 as usize,
            path.len() + 1,
            0, // checksum, unused in this variant
        ];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes
                .extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.pad();
    }

    /// Names and contents are padded to four bytes.
    fn pad(&mut self) {
        while self.bytes.len() % 4 != 0 {
            self.bytes.push(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_is_110_bytes_and_padded() {
        let mut archive = Archive::new();
        archive.file("/a", 0o644, b"hello");
        let bytes = archive.finish();
        assert_eq!(&bytes[..6], b"070701");
        assert_eq!(&bytes[110..112], b"a\0");
        assert_eq!(&bytes[112..117], b"hello");
        assert_eq!(bytes.len() % 4, 0);
    }

    #[test]
    fn size_and_mode_are_hexadecimal_fields() {
        let mut archive = Archive::new();
        archive.file("a", 0o755, &[7; 300]);
        let bytes = archive.finish();
        assert_eq!(&bytes[14..22], b"000081ed");
        assert_eq!(&bytes[54..62], b"0000012c");
    }

    #[test]
    fn archive_ends_with_the_trailer() {
        let bytes = Archive::new().finish();
        let text = String::from_utf8_lossy(&bytes);
        assert!(text.contains("TRAILER!!!"));
    }
}
