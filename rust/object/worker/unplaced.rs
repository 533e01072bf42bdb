// SPDX-License-Identifier: GPL-2.0

//! Lists of MAKE_RESIDENT that were admitted, since they fit in sum, and find no place as a whole when
//! their turn comes.

use kernel::sync::Arc;

use crate::object::{
    adapter::Adapter,
    allocation::Allocation,
    placement::{
        Behalf,
        Paged, //
    },
};

use super::Desk;

impl Desk {
    /// Brings in what there is room for of a list that does not fit as a whole. What has no place
    /// is marked: its fence is signalled all the same, and ALLOC_QUERY tells.
    pub(super) fn bring_some<'a>(
        &mut self,
        adapter: &Adapter,
        list: impl Iterator<Item = &'a Arc<Allocation>> + Clone,
        behalf: Behalf,
    ) {
        for one in list.clone() {
            let mut paged = Paged::default();
            let alone = core::iter::once(one);
            let brought = self.bring_once(adapter, alone, behalf, &|_, _| (), &mut paged);
            if brought.is_err() {
                let mut residence = one.residence().lock();
                residence.unplaced = true;
                // It is unpinned with the others.
                residence.pins += 1;
            }
        }
        list.for_each(Allocation::unpin);
    }
}
