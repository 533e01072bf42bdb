// SPDX-License-Identifier: GPL-2.0

//! Scheduling: on a machine with one processor, a worker that is woken during a call must not run
//! before the call is over, or it is measured along.

use std::ffi::c_int;

use crate::failure::Result;

const SCHED_OTHER: c_int = 0;
const SCHED_FIFO: c_int = 1;

/// `struct sched_param`.
#[repr(C)]
struct Parameter {
    priority: c_int,
}

extern "C" {
    fn sched_setscheduler(pid: c_int, policy: c_int, parameter: *const Parameter) -> c_int;
}

/// Keeps everything else off this processor while it exists.
#[derive(Debug)]
pub struct Alone(());

impl Alone {
    /// Begins it.
    pub fn begin() -> Result<Self> {
        set(SCHED_FIFO, 1)?;
        Ok(Self(()))
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        // Going back to the usual policy is always allowed.
        let _ = set(SCHED_OTHER, 0);
    }
}

fn set(policy: c_int, priority: c_int) -> Result<()> {
    let parameter = Parameter { priority };
    // SAFETY: 0 names the caller, and the parameter is only read.
    let result = unsafe { sched_setscheduler(0, policy, &parameter) };
    if result == 0 {
        Ok(())
    } else {
        Err(std::io::Error::last_os_error().into())
    }
}
