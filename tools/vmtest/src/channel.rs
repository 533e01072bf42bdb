// SPDX-License-Identifier: GPL-2.0
//! What the guest says to the host: a stream of frames over a virtio port.
//!
//! A frame is a name, a length and bytes. Frames of one name form a stream of
//! their own; the names are those of [`Message`]. The host answers the last one
//! with a single byte.

use std::io::{self, Read, Write};

/// The name of the port, as QEMU announces it to the guest.
pub const PORT_NAME: &str = "vidmm.vmtest.0";

const MAGIC: [u8; 4] = *b"VMF1";
const LARGEST_FRAME: usize = 256 << 20;

/// One frame of the stream.
#[derive(Debug, PartialEq, Eq)]
pub struct Frame {
    /// Which stream it belongs to.
    pub name: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

impl Frame {
    /// Writes the frame in one piece.
    pub fn write(name: &str, bytes: &[u8], port: &mut impl Write) -> io::Result<()> {
        let mut frame = Vec::with_capacity(10 + name.len() + bytes.len());
        let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        let name_length = u16::try_from(name.len()).map_err(io::Error::other)?;
        frame.extend_from_slice(&MAGIC);
        frame.extend_from_slice(&name_length.to_le_bytes());
        frame.extend_from_slice(&length.to_le_bytes());
        frame.extend_from_slice(name.as_bytes());
        frame.extend_from_slice(bytes);
        port.write_all(&frame)
    }

    /// Reads the next frame; `None` at the end of the stream.
    pub fn read(port: &mut impl Read) -> io::Result<Option<Frame>> {
        let mut header = [0u8; 10];
        match port.read_exact(&mut header) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error),
        }
        let name_length = usize::from(u16::from_le_bytes([header[4], header[5]]));
        let length = u32::from_le_bytes([header[6], header[7], header[8], header[9]]) as usize;
        if header[..4] != MAGIC || length > LARGEST_FRAME {
            return Err(io::Error::other(
                "the guest sent something that is no frame",
            ));
        }
        let mut name = vec![0; name_length];
        port.read_exact(&mut name)?;
        let mut bytes = vec![0; length];
        port.read_exact(&mut bytes)?;
        Ok(Some(Frame {
            name: String::from_utf8_lossy(&name).into_owned(),
            bytes,
        }))
    }
}

/// What a frame means.
#[derive(Debug, PartialEq, Eq)]
pub enum Message {
    /// The guest has started and mounted its file systems.
    Ready,
    /// Output for the user's terminal.
    Output(Vec<u8>),
    /// The names of the suites that are about to run, one per line.
    Suites(String),
    /// KTAP output of a suite.
    Ktap(String, Vec<u8>),
    /// A suite ended: its name and exit code (-1: killed or out of time).
    SuiteEnd(String, i32),
    /// A file that the job produced.
    File(String, Vec<u8>),
    /// The guest found something wrong: one sentence.
    Complaint(String),
    /// Objects that kmemleak suspects.
    Leak(String),
    /// The exit code of the job; nothing follows.
    End(i32),
}

impl Message {
    /// Writes the message as a frame.
    pub fn write(&self, port: &mut impl Write) -> io::Result<()> {
        match self {
            Message::Ready => Frame::write("ready", &[], port),
            Message::Output(bytes) => Frame::write("output", bytes, port),
            Message::Suites(names) => Frame::write("suites", names.as_bytes(), port),
            Message::Ktap(suite, bytes) => Frame::write(&format!("ktap/{suite}"), bytes, port),
            Message::SuiteEnd(suite, code) => Frame::write(
                &format!("suite-end/{suite}"),
                code.to_string().as_bytes(),
                port,
            ),
            Message::File(name, bytes) => Frame::write(&format!("file/{name}"), bytes, port),
            Message::Complaint(text) => Frame::write("complaint", text.as_bytes(), port),
            Message::Leak(text) => Frame::write("leak", text.as_bytes(), port),
            Message::End(code) => Frame::write("end", code.to_string().as_bytes(), port),
        }
    }

    /// Reads the next message; `None` at the end of the stream.
    pub fn read(port: &mut impl Read) -> io::Result<Option<Message>> {
        let Some(frame) = Frame::read(port)? else {
            return Ok(None);
        };
        let text = || String::from_utf8_lossy(&frame.bytes).into_owned();
        let number = || text().trim().parse().unwrap_or(-1);
        let (kind, detail) = frame.name.split_once('/').unwrap_or((&frame.name, ""));
        Ok(Some(match kind {
            "ready" => Message::Ready,
            "output" => Message::Output(frame.bytes),
            "suites" => Message::Suites(text()),
            "ktap" => Message::Ktap(detail.to_owned(), frame.bytes),
            "suite-end" => Message::SuiteEnd(detail.to_owned(), number()),
            "file" => Message::File(detail.to_owned(), frame.bytes),
            "complaint" => Message::Complaint(text()),
            "leak" => Message::Leak(text()),
            "end" => Message::End(number()),
            other => return Err(io::Error::other(format!("unknown frame '{other}'"))),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_the_wire() {
        let sent = [
            Message::Ready,
            Message::Ktap("residency".into(), b"ok 1 a\n".to_vec()),
            Message::SuiteEnd("residency".into(), 1),
            Message::File("a/b.png".into(), vec![0, 1, 255]),
            Message::End(-3),
        ];
        let mut wire = Vec::new();
        for message in &sent {
            message.write(&mut wire).unwrap();
        }
        let mut wire = wire.as_slice();
        for message in sent {
            assert_eq!(Message::read(&mut wire).unwrap(), Some(message));
        }
        assert_eq!(Message::read(&mut wire).unwrap(), None);
    }

    #[test]
    fn noise_is_an_error() {
        assert!(Frame::read(&mut &b"not a frame at all"[..]).is_err());
    }
}
