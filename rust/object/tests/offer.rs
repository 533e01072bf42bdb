// SPDX-License-Identifier: GPL-2.0

//! Offers whose pages may go when the system is short of memory.

use crate::object::{
    offer::{
        self,
        Level,
        Outcome,
        Pages,
        Patience,
        Terms, //
    },
    reclaim::Step, //
};

use super::*;

fn offer(fixture: &Fixture, hold: &Hold, level: Level, pages: Pages) -> Result {
    let terms = Terms { level, pages };
    let list = core::slice::from_ref(hold);
    offer::offer(&fixture.device, list, terms, Patience::AfterWork).map_err(|refused| refused.error)
}

fn reclaim(fixture: &Fixture, hold: &Hold) -> Result<Outcome> {
    let mut found = Outcome::Intact;
    let list = core::slice::from_ref(hold);
    let answer = offer::reclaim(&fixture.queue, list, |_, outcome| found = outcome);
    answer.map(|_| found).map_err(|refused| refused.error)
}

/// One MiB was given back.
const GIVEN: Step = Step::Given(256);

fn is_committed(hold: &Hold) -> bool {
    hold.residence().lock().backing().is_some()
}

#[kunit_tests(vidmm_object_offer)]
mod suite {
    use super::*;

    /// RES-26: by level, and only what was offered with pages that may go.
    #[test]
    fn pages_go_by_level() -> Result {
        let fixture = Fixture::new()?;
        let adapter = fixture.attached.adapter();
        let high = fixture.allocate(MIB, 0b10, Flags::default())?;
        let low = fixture.allocate(MIB, 0b10, Flags::default())?;
        let kept = fixture.allocate(MIB, 0b10, Flags::default())?;
        for hold in [&high, &low, &kept] {
            hold.commit()?;
        }
        offer(&fixture, &high, Level::High, Pages::MayGo)?;
        offer(&fixture, &low, Level::Low, Pages::MayGo)?;
        offer(&fixture, &kept, Level::Low, Pages::Stay)?;
        assert_eq!(adapter.surrenderable(), 2 * MIB);
        assert_eq!(adapter.surrender_first(), GIVEN);
        assert!(is_committed(&high) && !is_committed(&low));
        assert_eq!(adapter.surrender_first(), GIVEN);
        assert_eq!(adapter.surrender_first(), Step::Nothing);
        assert!(is_committed(&kept));
        assert_eq!(adapter.surrenderable(), 0);
        assert_eq!(reclaim(&fixture, &low)?, Outcome::Discarded);
        assert!(is_committed(&low));
        assert_eq!(reclaim(&fixture, &kept)?, Outcome::Intact);
        for hold in [high, low, kept] {
            forget(hold);
        }
        fixture.close();
        Ok(())
    }

    /// RES-22: without pages it stays offered.
    #[test]
    fn pages_that_cannot_be_had_again_leave_the_offer() -> Result {
        let fixture = Fixture::new()?;
        let adapter = fixture.attached.adapter();
        let hold = fixture.allocate(MIB, 0b10, Flags::default())?;
        hold.commit()?;
        offer(&fixture, &hold, Level::Normal, Pages::MayGo)?;
        assert_eq!(adapter.surrender_first(), GIVEN);
        adapter.withhold_backing(true);
        assert_eq!(reclaim(&fixture, &hold)?, Outcome::NotCommitted);
        assert!(hold.is_offered());
        adapter.withhold_backing(false);
        assert_eq!(reclaim(&fixture, &hold)?, Outcome::Discarded);
        assert!(!hold.is_offered());
        forget(hold);
        fixture.close();
        Ok(())
    }

    /// What is resident is pushed out first, by Discard.
    #[test]
    fn resident_memory_leaves_before_its_pages() -> Result {
        let fixture = Fixture::new()?;
        let adapter = fixture.attached.adapter();
        let hold = fixture.allocate(MIB, 0b10, Flags::default())?;
        fixture.make_resident(&hold)?;
        fixture.settle();
        offer(&fixture, &hold, Level::Normal, Pages::MayGo)?;
        let _ = fixture.operations()?;
        assert_eq!(adapter.surrender_first(), Step::Nothing);
        fixture.settle();
        assert!(!resident(&hold));
        let operations = fixture.operations()?;
        assert_eq!(operations.as_slice(), &[(Name::Discard, MIB)]);
        assert_eq!(adapter.surrender_first(), GIVEN);
        // It is still on the requirement list, so it comes back.
        assert_eq!(reclaim(&fixture, &hold)?, Outcome::Discarded);
        fixture.settle();
        assert!(resident(&hold));
        forget(hold);
        fixture.close();
        Ok(())
    }
}
