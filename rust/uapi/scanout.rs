// SPDX-License-Identifier: GPL-2.0

//! SCANOUT, and what QUERY says of sources.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::object::{
    allocation::Hold,
    fence::Fence,
    scanout::{
        self,
        Purpose,
        Request, //
    },
    submission, //
};

use super::{
    abi::{
        self,
        InfoSource,
        Point,
        Scanout, //
    },
    dispatch::{
        argument,
        Done, //
    },
    fence,
    file::File, //
};

argument! {
    Scanout:
    flags flags;
    zero;
    results previous, sequence;
    report
}

/// Lets a source show a primary, or nothing.
///
/// # Errors
///
/// - `EOPNOTSUPP`: a flag of a point.
/// - `EINVAL`: a value without a fence.
/// - `ENOENT`: no such allocation or fence.
/// - `EACCES`: a fence that only the kernel signals is to be signalled.
/// - Those of [`scanout::scanout`].
pub(super) fn scanout(file: &File, argument: &mut Scanout) -> Result<Done> {
    for point in [&argument.wait, &argument.signal] {
        fence::check_point(point)?;
    }
    for point in [&argument.wait, &argument.signal] {
        if point.fence == 0 && point.value != 0 {
            return Err(EINVAL);
        }
    }
    let primary: Option<Hold> = match argument.alloc {
        0 => None,
        handle => Some(file.handles().get(handle)?),
    };
    let wait = resolve(file, &argument.wait)?;
    let signal = resolve(file, &argument.signal)?;
    if let Some(point) = &signal {
        fence::check_signal(point)?;
    }
    let request = Request {
        source: argument.source,
        primary,
        wait,
        signal,
        purpose: match argument.flags & abi::SCANOUT_TEST {
            0 => Purpose::Show,
            _ => Purpose::Test,
        },
    };
    let granted = scanout::scanout(file.client(), request)?;
    argument.previous = granted.previous;
    argument.sequence = granted.sequence;
    Ok(Done)
}

/// Looks the fence of a point up, if there is one.
fn resolve(file: &File, point: &Point) -> Result<Option<submission::Point>> {
    if point.fence == 0 {
        return Ok(None);
    }
    let fence: Arc<Fence> = file.handles().get(point.fence)?;
    Ok(Some(submission::Point {
        fence,
        value: point.value,
    }))
}

/// Returns what a source is and does.
pub(super) fn describe(file: &File, index: u32) -> Option<InfoSource> {
    let adapter = file.adapter();
    let snapshot = adapter.sources().get(index)?.snapshot();
    let limits = &adapter.backend().capabilities().picture;
    let mine = snapshot.owner == Some(file.client().id());
    let flags = [
        (snapshot.shown.is_some(), abi::SOURCE_ENABLED),
        (snapshot.owner.is_some(), abi::SOURCE_OWNED),
    ];
    Some(InfoSource {
        source: index,
        flags: flags
            .iter()
            .filter(|(set, _)| *set)
            .fold(0, |flags, (_, flag)| flags | flag),
        alloc: match &snapshot.shown {
            Some(shown) if mine => shown.name().handle(),
            _ => 0,
        },
        pitch_align: limits.pitch_align,
        max_width: limits.width,
        max_height: limits.height,
        sequence: snapshot.sequence,
    })
}
