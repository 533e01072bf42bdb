// SPDX-License-Identifier: GPL-2.0

//! The address space of the paging process: what the backend is told when it comes.

use crate::{
    backend::{
        software,
        Capabilities,
        ObjectCall, //
    },
    units::SegmentId,
};

use super::*;

/// The number of the paging process.
const PROCESS: u64 = 1;

/// Attaches an adapter whose backend says of its MMU what `change` leaves of profile DISC.
fn attach(change: impl FnOnce(&mut Capabilities)) -> Result<(Arc<Recorder>, Attached)> {
    let mut capabilities = software::capabilities(&Parameters::default())?;
    change(&mut capabilities);
    let recorder = Recorder::with(capabilities)?;
    let backend: Arc<dyn Backend> = recorder.clone();
    Ok((recorder, Attached::new(8, backend)?))
}

/// Attaches an adapter whose backend wants `bytes` at `start` for itself.
fn attach_with_range(start: u64, bytes: u64) -> Result {
    attach(|capabilities| {
        if let Some(translation) = &mut capabilities.translation {
            translation.reserved_bytes = bytes;
            translation.reserved_at = Some(start);
        }
    })
    .map(|_| ())
}

#[kunit_tests(vidmm_object_paging_space)]
mod suite {
    use super::*;

    /// VA-2, VA-5, VA-8: the process, its device, its tables at once; then the context, which is told
    /// the root before anything is built for it.
    #[test]
    fn space_is_there_before_its_context() -> Result {
        let (recorder, attached) = attach(|_| ())?;
        let recorded = recorder.take()?;
        let objects = [
            Recorded::Object(ObjectCall::CreateProcess { process: PROCESS }),
            Recorded::Object(ObjectCall::CreateDevice { process: PROCESS }),
        ];
        assert_eq!(recorded[..2], objects);
        let last = recorded.len() - 1;
        for update in &recorded[2..last] {
            let is_update =
                matches!(update, Recorded::Executed(one) if one.name == Name::UpdatePageTable);
            assert!(is_update);
        }
        let space = attached.adapter().paging_process().space().ok_or(EINVAL)?;
        let root = space.root();
        let context = attached.adapter().paging_process().context();
        assert_eq!(recorded[last], Recorded::Root { context, root });
        assert_eq!(space.tables().len(), 18);
        Ok(())
    }

    /// VA-3: what the backend keeps for itself lies where nobody else does.
    #[test]
    fn range_of_the_backend_is_checked() {
        const MIB: u64 = 1 << 20;
        assert_eq!(attach_with_range(64 * MIB, MIB), Ok(()));
        // Page 0, the window, and the scratch area.
        for start in [0, 4096, 2 * MIB, 34 * MIB - 4096] {
            assert_eq!(attach_with_range(start, MIB), Err(EINVAL));
        }
        assert_eq!(attach_with_range(64 * MIB + 1, MIB), Err(EINVAL));
        assert_eq!(attach_with_range(64 * MIB, MIB + 1), Err(EINVAL));
        assert_eq!(attach_with_range(u64::MAX - 4095, 8192), Err(EINVAL));
    }

    /// VA-4: a segment that cannot hold the tables is no segment for them.
    #[test]
    fn tables_need_a_segment_with_room() {
        let elsewhere = |number| {
            attach(|capabilities| {
                if let (Some(translation), Some(id)) =
                    (&mut capabilities.translation, SegmentId::new(number))
                {
                    translation.paging_tables = id;
                }
            })
            .map(|_| ())
        };
        assert_eq!(elsewhere(0), Ok(()));
        assert_eq!(elsewhere(2), Ok(()));
        assert_eq!(elsewhere(9), Err(ENOSPC));
    }
}
