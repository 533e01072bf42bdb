// SPDX-License-Identifier: GPL-2.0

//! Pages of a CPU window: what the backend is told, and when.

use crate::{
    backend::WindowPage,
    object::host_aperture::{
        HostAperture,
        Wanted, //
    },
    units::{
        Place,
        SegmentId, //
    },
};

use super::*;

/// Bytes of a page of the window of profile DISC.
const PAGE: u64 = 64 << 10;
/// Pages of that window.
const PAGES: usize = 16;

/// Calls of the backend for pages of the window: the page, and what it shows from then on.
type Calls = KVec<(u32, Option<u32>)>;

fn calls(fixture: &Fixture) -> Result<Calls> {
    let mut calls = KVec::new();
    for recorded in fixture.recorder.take()? {
        let call = match recorded {
            Recorded::Shown {
                page: WindowPage { window, page },
                ..
            } => (window, Some(page)),
            Recorded::Hidden { window, .. } => (window, None),
            _ => continue,
        };
        calls.push(call, GFP_KERNEL)?;
    }
    Ok(calls)
}

/// Touches the page of an allocation that lies in page `page` of the segment; says whether it got a
/// page of the window.
fn touch(fixture: &Fixture, window: &HostAperture, hold: &Hold, page: u64) -> bool {
    let wanted = Wanted {
        allocation: hold,
        offset: 0,
        place: Place::new(window.segment(), page * PAGE),
    };
    let adapter = fixture.attached.adapter();
    matches!(window.show(adapter, wanted, |_| ()), Ok(Some(())))
}

#[kunit_tests(vidmm_object_host_aperture)]
mod suite {
    use super::*;

    /// SEG-29: the page that was asked for longest ago is taken back, and nobody has it meanwhile.
    #[test]
    fn page_is_taken_back_before_it_is_given_again() -> Result {
        let fixture = Fixture::new()?;
        let adapter = fixture.attached.adapter();
        let segment = SegmentId::new(2).ok_or(EINVAL)?;
        let window = adapter.host_aperture(segment).ok_or(EINVAL)?;
        let hold = fixture.allocate(PAGE, 0b100, Flags::default())?;
        let other = fixture.allocate(PAGE, 0b100, Flags::default())?;
        for page in 0..=PAGES as u64 {
            let hold = if page == 3 { &other } else { &hold };
            assert!(touch(&fixture, window, hold, page));
        }
        assert_eq!(window.recycled(), 1);
        let calls = self::calls(&fixture)?;
        assert_eq!(calls.len(), PAGES + 2);
        assert_eq!(calls.get(PAGES..), Some(&[(0, None), (0, Some(16))][..]));
        assert_eq!(window.bytes_mapped(), PAGES as u64 * PAGE);
        window.give_back(adapter, &hold);
        assert_eq!(window.bytes_mapped(), PAGE);
        assert_eq!(self::calls(&fixture)?.len(), PAGES - 1);
        window.give_back(adapter, &other);
        assert_eq!(self::calls(&fixture)?.as_slice(), &[(3, None)]);
        assert!(!touch(&fixture, window, &hold, 256));
        forget(hold);
        forget(other);
        fixture.close();
        Ok(())
    }
}
