// SPDX-License-Identifier: GPL-2.0

//! Errors: which request failed, with which errno, and what in its argument is to blame.

use std::fmt;

use crate::abi;

pub use rustix::io::Errno;

/// The result of a call of this library.
pub type Result<T> = std::result::Result<T, Error>;

/// A request that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    /// Name of the request as the interface writes it, or of the system call.
    pub request: &'static str,
    /// What the kernel answered.
    pub errno: Errno,
    /// What in the argument is to blame.
    pub blame: Blame,
}

/// The part of an argument that made a request fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The argument as a whole, or nothing in it.
    Argument,
    /// The element of its list with this index.
    Element(u32),
    /// A defect of a submission: a `SUBMIT_ERROR_` kind, and the index or byte offset that goes with
    /// it.
    Submission {
        /// `SUBMIT_ERROR_BAD_PACKET` and so on.
        kind: u32,
        /// List entry, or byte offset for packet errors.
        index: u32,
    },
}

impl Blame {
    /// Reads the `fail_index` of an argument.
    pub(crate) fn element(fail_index: u32) -> Self {
        match fail_index {
            abi::FAIL_INDEX_NONE => Self::Argument,
            index => Self::Element(index),
        }
    }

    /// Reads `error_kind` and `error_index` of a submission.
    pub(crate) fn submission(kind: u32, index: u32) -> Self {
        match kind {
            abi::SUBMIT_ERROR_NONE => Self::Argument,
            kind => Self::Submission { kind, index },
        }
    }
}

impl Error {
    /// Returns the error of a request whose argument has no part to blame.
    pub fn new(request: &'static str, errno: Errno) -> Self {
        Self {
            request,
            errno,
            blame: Blame::Argument,
        }
    }

    /// Returns the `SUBMIT_ERROR_` kind of a refused submission, [`None`] for other errors.
    pub fn submit_kind(&self) -> Option<u32> {
        match self.blame {
            Blame::Submission { kind, .. } => Some(kind),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.request)?;
        match ERRNO_TEXT.iter().find(|(errno, ..)| *errno == self.errno) {
            Some((_, name, text)) => write!(f, "{text} ({name})")?,
            None => write!(f, "{}", std::io::Error::from(self.errno))?,
        }
        match self.blame {
            Blame::Argument => Ok(()),
            Blame::Element(index) => write!(f, ", element {index}"),
            Blame::Submission { kind, index } => write!(f, ", {} {index}", submit_kind_name(kind)),
        }
    }
}

impl std::error::Error for Error {}

/// The errno vocabulary of the interface.
const ERRNO_TEXT: &[(Errno, &str, &str)] = &[
    (Errno::NOTTY, "ENOTTY", "no such call"),
    (
        Errno::TOOBIG,
        "E2BIG",
        "the argument uses something this kernel does not know",
    ),
    (
        Errno::OPNOTSUPP,
        "EOPNOTSUPP",
        "a flag, mode, kind or feature is not available",
    ),
    (Errno::INVAL, "EINVAL", "the argument is malformed"),
    (Errno::FAULT, "EFAULT", "bad address"),
    (Errno::BADF, "EBADF", "the descriptor is not open"),
    (
        Errno::MFILE,
        "EMFILE",
        "no room for a new descriptor in this process",
    ),
    (Errno::NFILE, "ENFILE", "no room for a new descriptor"),
    (
        Errno::OVERFLOW,
        "EOVERFLOW",
        "offset plus size does not fit",
    ),
    (Errno::NOENT, "ENOENT", "no such object"),
    (Errno::XDEV, "EXDEV", "objects belong to different devices"),
    (Errno::PERM, "EPERM", "privilege missing"),
    (
        Errno::ACCESS,
        "EACCES",
        "this use of the object is not allowed",
    ),
    (Errno::EXIST, "EEXIST", "the range overlaps another one"),
    (
        Errno::BUSY,
        "EBUSY",
        "the object is in a state that forbids this",
    ),
    (Errno::AGAIN, "EAGAIN", "the call would have to wait"),
    (Errno::TIME, "ETIME", "the deadline has passed"),
    (Errno::INTR, "EINTR", "a signal arrived"),
    (
        Errno::NOMEM,
        "ENOMEM",
        "system memory or the memory control group is exhausted",
    ),
    (
        Errno::NOSPC,
        "ENOSPC",
        "no place in video memory, even after paging",
    ),
    (
        Errno::NOBUFS,
        "ENOBUFS",
        "the list is too big to handle at once",
    ),
    (
        Errno::NODATA,
        "ENODATA",
        "no signal for that fence value is queued",
    ),
    (
        Errno::CANCELED,
        "ECANCELED",
        "the work was thrown away by a reset",
    ),
    (Errno::IO, "EIO", "the device is in error"),
    (Errno::NODEV, "ENODEV", "the adapter is gone"),
];

/// Returns the name of a submit error kind.
pub fn submit_kind_name(kind: u32) -> &'static str {
    match kind {
        abi::SUBMIT_ERROR_NONE => "NONE",
        abi::SUBMIT_ERROR_BAD_PACKET => "BAD_PACKET at byte",
        abi::SUBMIT_ERROR_UNPATCHED_OPERAND => "UNPATCHED_OPERAND at byte",
        abi::SUBMIT_ERROR_PATCH_NOT_OPERAND => "PATCH_NOT_OPERAND in patch entry",
        abi::SUBMIT_ERROR_PATCH_RANGE => "PATCH_RANGE in patch entry",
        abi::SUBMIT_ERROR_ALLOC_RANGE => "ALLOC_RANGE in patch entry",
        abi::SUBMIT_ERROR_SPLIT_ORDER => "SPLIT_ORDER in patch entry",
        abi::SUBMIT_ERROR_SPLIT_BOUNDARY => "SPLIT_BOUNDARY in patch entry",
        abi::SUBMIT_ERROR_SLOT_RANGE => "SLOT_RANGE in patch entry",
        abi::SUBMIT_ERROR_DUPLICATE => "DUPLICATE in allocation entry",
        abi::SUBMIT_ERROR_ACCESS => "ACCESS in allocation entry",
        abi::SUBMIT_ERROR_INSTANCE => "INSTANCE in allocation entry",
        abi::SUBMIT_ERROR_OFFERED => "OFFERED in allocation entry",
        abi::SUBMIT_ERROR_NOT_RESIDENT => "NOT_RESIDENT in allocation entry",
        abi::SUBMIT_ERROR_TOO_LARGE => "TOO_LARGE in patch entry",
        abi::SUBMIT_ERROR_BAD_POINT => "BAD_POINT in wait or signal entry",
        abi::SUBMIT_ERROR_ALLOC_INDEX => "ALLOC_INDEX in patch entry",
        abi::SUBMIT_ERROR_NOT_BOUND => "NOT_BOUND in patch entry",
        abi::SUBMIT_ERROR_UNUSED => "UNUSED in allocation entry",
        abi::SUBMIT_ERROR_BAD_HANDLE => "BAD_HANDLE in allocation entry",
        _ => "an unknown kind of error at",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_names_request_errno_and_element() {
        let error = Error {
            blame: Blame::element(3),
            ..Error::new("MAKE_RESIDENT", Errno::NOSPC)
        };

        assert_eq!(
            error.to_string(),
            "MAKE_RESIDENT: no place in video memory, even after paging (ENOSPC), element 3"
        );
    }

    #[test]
    fn message_of_a_refused_submission_names_the_kind() {
        let error = Error {
            blame: Blame::submission(abi::SUBMIT_ERROR_NOT_BOUND, 7),
            ..Error::new("SUBMIT_PATCHED", Errno::INVAL)
        };

        assert!(error.to_string().ends_with(", NOT_BOUND in patch entry 7"));
    }
}
