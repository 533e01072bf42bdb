// SPDX-License-Identifier: GPL-2.0

//! Failures: the sentence that a program ends with, which says what to do where that is known.

use std::path::Path;

use libvidmm::{
    Adapter,
    Errno,
    Error, //
};

/// Why a subcommand gave up: a sentence for its user.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) String);

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self(error.to_string())
    }
}

/// Opens an adapter.
pub(crate) fn open(path: &Path) -> Result<Adapter, Failure> {
    check(path, Adapter::open(path))
}

/// Opens an adapter so that reading its events does not wait.
pub(crate) fn open_nonblocking(path: &Path) -> Result<Adapter, Failure> {
    check(path, Adapter::open_nonblocking(path))
}

/// Checks that what was opened is an adapter.
fn check(path: &Path, opened: libvidmm::Result<Adapter>) -> Result<Adapter, Failure> {
    let adapter = opened.map_err(|error| cannot_open(path, error))?;
    match adapter.info() {
        Err(error) if error.errno == Errno::NOTTY => Err(Failure(format!(
            "{} is not the file of a vidmm adapter",
            path.display()
        ))),
        Err(error) => Err(error.into()),
        Ok(_) => Ok(adapter),
    }
}

/// Says why an adapter cannot be opened, and what can be done about it.
fn cannot_open(path: &Path, error: Error) -> Failure {
    let advice = match error.errno {
        Errno::NOENT => "load the module (insmod vidmm.ko), or name another file with --device",
        Errno::ACCESS | Errno::PERM => "use the rights of its group or of root",
        Errno::NODEV | Errno::NXIO => "the adapter behind it is gone: load the module again",
        _ => "is it the file of a vidmm adapter?",
    };
    let reason = std::io::Error::from(error.errno).to_string();
    // The number in parentheses is for programs.
    let reason = reason.split(" (os error").next().unwrap_or_default();
    Failure(format!(
        "cannot open {}: {}; {advice}",
        path.display(),
        reason.to_lowercase()
    ))
}

/// Makes a function that says what failed, to be used with `map_err`.
pub(crate) fn while_doing(what: &str) -> impl Fn(Error) -> Failure + '_ {
    move |error| Failure(format!("{what} failed: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_file_leads_to_advice() {
        let Failure(sentence) = open(Path::new("/dev/no-such-adapter")).unwrap_err();

        assert!(sentence.starts_with("cannot open /dev/no-such-adapter: no such file"));
        assert!(sentence.contains("insmod vidmm.ko"));
    }

    #[test]
    fn file_of_another_driver_is_no_adapter() {
        let Failure(sentence) = open(Path::new("/dev/null")).unwrap_err();

        assert_eq!(sentence, "/dev/null is not the file of a vidmm adapter");
    }
}
