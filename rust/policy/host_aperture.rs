// SPDX-License-Identifier: GPL-2.0

//! Who has the pages of a CPU host aperture, and who gives one up when none is free.
//!
//! A window of few pages shows a segment of many (SEG-28). Whoever touches a page of the segment gets
//! a page of the window for it; when none is free, the one that was asked for longest ago is taken
//! back (SEG-29).
//!
//! # Everybody comes to an end
//!
//! A page that is taken back is soon touched again, so threads could take pages from each other for
//! ever, and one instruction may need several pages at once: two of its source and two of its
//! destination. That they all come to an end follows from *turns*:
//!
//! * Only the task whose turn it is takes pages back. What it was given in its turn, and what it
//!   asked for again, is taken back by nobody else, and by itself only when all pages of the window
//!   are such, the oldest one first.
//! * A turn lasts until [`Times::lease`] after the last page given in it, and at most
//!   [`Times::turn`]. A task that has a turn therefore goes on with all it needs: each of the four
//!   pages is the newest one when it comes, and a window has at least [`LEAST_PAGES`].
//! * The first task that asks during the turn of another is next. It has the time of a lease to come
//!   back for its turn; if it does not, the turn is free for all.
//!
//! A task that goes through the window alone never waits.

use core::borrow::{
    Borrow,
    BorrowMut, //
};

/// The fewest pages of a window: what one instruction can touch at once.
pub const LEAST_PAGES: u32 = 4;

/// Marks the end of a list, and a page that is not shown.
const NONE: u32 = u32::MAX;

/// The memory lent to a window does not suffice, or it has too few pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeMismatch;

/// How long turns are, in the unit of the caller's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// How long a task keeps its turn after it was given a page.
    pub lease: u64,
    /// How long it keeps its turn at most.
    pub turn: u64,
}

/// A page of the window.
#[derive(Clone, Copy, Debug)]
pub struct Slot<T> {
    /// The page of the segment it shows, or [`NONE`].
    page: u32,
    /// Whose page that is; none if it shows nothing.
    owner: Option<T>,
    /// The turn in which it was given or asked for again; 0 is none.
    turn: u64,
    /// The page that was asked for next, or the next free one.
    newer: u32,
    /// The page that was asked for before.
    older: u32,
}

impl<T> Slot<T> {
    /// A page that is lent to a window.
    pub const UNUSED: Self = Self {
        page: NONE,
        owner: None,
        turn: 0,
        newer: NONE,
        older: NONE,
    };
}

/// A touch of a page of the segment.
#[derive(Clone, Copy, Debug)]
pub struct Touch<T> {
    /// The page of the segment.
    pub page: u32,
    /// Whose it is.
    pub owner: T,
    /// Who touches it.
    pub task: u64,
    /// What time it is.
    pub now: u64,
}

/// What a touch gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer<T> {
    /// The page is shown by this page of the window already.
    Shown(u32),
    /// This page of the window is to show it. If it showed another one, that is taken back first.
    Given(u32, Option<T>),
    /// Another task has the turn, until this time.
    Wait(u64),
}

/// The turn to take pages back.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    /// Counts turns; 0 before the first.
    number: u64,
    /// Whose it is.
    task: u64,
    /// When it began.
    begin: u64,
    /// When it ends.
    end: u64,
    /// Who has asked for the next one.
    next: Option<u64>,
}

/// The pages of one window.
///
/// It never allocates: `slots` and `index` are lent when it is made. `T` names an owner. Each
/// operation takes constant time but two: taking back goes past the pages of the turn, and
/// [`take_back`](Self::take_back) goes through the pages in use.
///
/// # Invariants
///
/// A page of the segment is shown by at most one page of the window; `index` and `slots` agree. Each
/// page of the window is in one of two lists: those in use, in the order in which they were asked for
/// last, and the free ones.
pub struct Pages<S, I, T> {
    /// The pages of the window.
    slots: S,
    /// For each page of the segment the page of the window that shows it, or [`NONE`].
    index: I,
    /// How long turns are.
    times: Times,
    /// The turn.
    turn: Turn,
    /// The page in use that was asked for longest ago.
    oldest: u32,
    /// The page in use that was asked for last.
    newest: u32,
    /// The first free page.
    free: u32,
    /// Pages in use.
    used: u32,
    /// Names owners.
    _owner: core::marker::PhantomData<T>,
}

impl<S, I, T> Pages<S, I, T>
where
    S: Borrow<[Slot<T>]> + BorrowMut<[Slot<T>]>,
    I: Borrow<[u32]> + BorrowMut<[u32]>,
    T: Copy + PartialEq,
{
    /// Returns a window of as many pages as `slots` has, onto as many pages as `index` has, that
    /// shows nothing. Both are lent with any content.
    ///
    /// # Errors
    ///
    /// [`SizeMismatch`] if the window has fewer than [`LEAST_PAGES`], or either has too many to count.
    pub fn new(mut slots: S, mut index: I, times: Times) -> Result<Self, SizeMismatch> {
        let count = u32::try_from(slots.borrow().len()).map_err(|_| SizeMismatch)?;
        let pages = u32::try_from(index.borrow().len()).map_err(|_| SizeMismatch)?;
        if count < LEAST_PAGES || count == NONE || pages == NONE {
            return Err(SizeMismatch);
        }
        for (slot, next) in slots.borrow_mut().iter_mut().zip(1..) {
            *slot = Slot::UNUSED;
            slot.newer = if next < count { next } else { NONE };
        }
        index.borrow_mut().fill(NONE);
        Ok(Self {
            slots,
            index,
            times,
            turn: Turn::default(),
            oldest: NONE,
            newest: NONE,
            free: 0,
            used: 0,
            _owner: core::marker::PhantomData,
        })
    }

    /// Returns how many pages are in use.
    pub fn used(&self) -> u32 {
        self.used
    }

    /// Returns which pages of the window are in use and whose they are, the one that was asked for
    /// longest ago first.
    pub fn owners(&self) -> impl Iterator<Item = (u32, T)> + '_ {
        let mut next = self.oldest;
        core::iter::from_fn(move || {
            let (page, slot) = (next, self.slot(next));
            next = slot.newer;
            slot.owner.map(|owner| (page, owner))
        })
    }

    /// Returns which page of the window `touch` gets, and notes that it has it.
    ///
    /// A page outside the segment gets none, for ever.
    ///
    /// Requirement: SEG-29.
    pub fn touch(&mut self, touch: Touch<T>) -> Answer<T> {
        let Some(&shown) = self.index.borrow().get(position(touch.page)) else {
            return Answer::Wait(u64::MAX);
        };
        if shown != NONE {
            self.unlink(shown);
            self.occupy(shown, touch);
            return Answer::Shown(shown);
        }
        if self.free != NONE {
            let given = self.free;
            self.free = self.slot(given).newer;
            self.used = self.used.saturating_add(1);
            self.occupy(given, touch);
            return Answer::Given(given, None);
        }
        if let Err(until) = self.take_turn(touch.task, touch.now) {
            return Answer::Wait(until);
        }
        let given = self.victim();
        let lost = self.slot(given);
        self.set_index(lost.page, NONE);
        self.unlink(given);
        self.occupy(given, touch);
        Answer::Given(given, lost.owner)
    }

    /// Lets a page of the window show nothing; it is free again. Nothing happens if it is.
    pub fn give_back(&mut self, shown: u32) {
        let slot = self.slot(shown);
        if slot.owner.is_none() {
            return;
        }
        self.set_index(slot.page, NONE);
        self.unlink(shown);
        self.set(
            shown,
            Slot {
                newer: self.free,
                ..Slot::UNUSED
            },
        );
        self.free = shown;
        self.used = self.used.saturating_sub(1);
    }

    /// Lets pages of the window whose owners `wanted` names show nothing; writes down which in
    /// `taken`, and returns how many. If that is all there is room for, there may be more.
    pub fn take_back(&mut self, taken: &mut [u32], wanted: impl Fn(&T) -> bool) -> usize {
        let mut count = 0;
        let mut next = self.oldest;
        while next != NONE && count < taken.len() {
            let shown = next;
            let slot = self.slot(shown);
            next = slot.newer;
            if slot.owner.as_ref().is_some_and(&wanted) {
                self.give_back(shown);
                if let Some(entry) = taken.get_mut(count) {
                    *entry = shown;
                }
                count = count.saturating_add(1);
            }
        }
        count
    }

    /// Lets `task` have the turn.
    ///
    /// # Errors
    ///
    /// Until when it is not its turn.
    fn take_turn(&mut self, task: u64, now: u64) -> Result<(), u64> {
        let turn = &mut self.turn;
        let begun = turn.number != 0;
        if begun && now < turn.end {
            if turn.task != task {
                turn.next = turn.next.or(Some(task));
                return Err(turn.end);
            }
        } else {
            // The one that asked first goes first, if it comes.
            let grace = turn.end.saturating_add(self.times.lease);
            if turn.next.is_some_and(|next| next != task) && now < grace {
                return Err(grace);
            }
            *turn = Turn {
                number: turn.number.saturating_add(1),
                task,
                begin: now,
                end: now,
                next: None,
            };
        }
        let most = turn.begin.saturating_add(self.times.turn);
        turn.end = now.saturating_add(self.times.lease).min(most);
        Ok(())
    }

    /// Returns the page to be taken back in the turn: the oldest one that is not of the turn, or the
    /// oldest one.
    fn victim(&self) -> u32 {
        let mut page = self.oldest;
        while page != NONE {
            let slot = self.slot(page);
            if slot.turn != self.turn.number {
                return page;
            }
            page = slot.newer;
        }
        self.oldest
    }

    /// Makes a page, which is in no list, the newest one in use, for `touch`.
    fn occupy(&mut self, page: u32, touch: Touch<T>) {
        let turn = &self.turn;
        let mine = turn.number != 0 && turn.task == touch.task && touch.now <= turn.end;
        let slot = Slot {
            page: touch.page,
            owner: Some(touch.owner),
            turn: if mine { turn.number } else { 0 },
            newer: NONE,
            older: self.newest,
        };
        self.set(page, slot);
        self.set_index(touch.page, page);
        let before = self.newest;
        self.newest = page;
        match self.slots.borrow_mut().get_mut(position(before)) {
            Some(older) => older.newer = page,
            None => self.oldest = page,
        }
    }

    /// Takes a page out of the list of those in use.
    fn unlink(&mut self, page: u32) {
        let slot = self.slot(page);
        let slots = self.slots.borrow_mut();
        match slots.get_mut(position(slot.older)) {
            Some(older) => older.newer = slot.newer,
            None => self.oldest = slot.newer,
        }
        match slots.get_mut(position(slot.newer)) {
            Some(newer) => newer.older = slot.older,
            None => self.newest = slot.older,
        }
    }

    /// Returns what is known of a page of the window.
    fn slot(&self, page: u32) -> Slot<T> {
        let slot = self.slots.borrow().get(position(page));
        slot.copied().unwrap_or(Slot::UNUSED)
    }

    /// Writes down what is known of a page of the window.
    fn set(&mut self, page: u32, slot: Slot<T>) {
        if let Some(entry) = self.slots.borrow_mut().get_mut(position(page)) {
            *entry = slot;
        }
    }

    /// Notes which page of the window shows a page of the segment.
    fn set_index(&mut self, page: u32, shown: u32) {
        if let Some(entry) = self.index.borrow_mut().get_mut(position(page)) {
            *entry = shown;
        }
    }
}

/// Returns a page number as an index.
const fn position(page: u32) -> usize {
    // CAST: `usize` has 64 bits wherever this driver runs.
    page as usize
}

#[cfg_attr(CONFIG_KUNIT, kernel::macros::kunit_tests(vidmm_policy_host_aperture))]
#[cfg(any(test, CONFIG_KUNIT))]
mod tests {
    use super::*;

    type Window = Pages<[Slot<u64>; 4], [u32; 32], u64>;

    const TIMES: Times = Times {
        lease: 10,
        turn: 100,
    };

    fn window() -> Window {
        Window::new([Slot::UNUSED; 4], [7; 32], TIMES).unwrap()
    }

    /// A touch of `page`, which its own number owns.
    fn touch(page: u32, task: u64, now: u64) -> Touch<u64> {
        Touch {
            page,
            owner: u64::from(page),
            task,
            now,
        }
    }

    /// A window that shows pages 0 to 3.
    fn full() -> Window {
        let mut window = window();
        for page in 0..4 {
            let _ = window.touch(touch(page, 1, 0));
        }
        window
    }

    #[test]
    fn small_window_is_refused() {
        assert!(Pages::<_, _, u64>::new([Slot::UNUSED; 3], [0; 32], TIMES).is_err());
    }

    #[test]
    fn free_pages_are_given_first() {
        let mut window = window();
        for page in 0..4 {
            assert_eq!(window.touch(touch(page, 1, 0)), Answer::Given(page, None));
        }
        assert_eq!(window.used(), 4);
        assert_eq!(window.touch(touch(2, 2, 0)), Answer::Shown(2));
    }

    #[test]
    fn page_asked_for_longest_ago_is_taken_back() {
        let mut window = full();
        assert_eq!(window.touch(touch(0, 1, 0)), Answer::Shown(0));
        assert!(window.owners().eq([(1, 1), (2, 2), (3, 3), (0, 0)]));
        assert_eq!(window.touch(touch(9, 1, 0)), Answer::Given(1, Some(1)));
        assert_eq!(window.touch(touch(1, 1, 0)), Answer::Given(2, Some(2)));
        assert_eq!(window.used(), 4);
    }

    #[test]
    fn page_outside_the_segment_gets_none() {
        assert_eq!(window().touch(touch(32, 1, 0)), Answer::Wait(u64::MAX));
    }

    #[test]
    fn given_back_page_is_free() {
        let mut window = full();
        window.give_back(2);
        window.give_back(2);
        assert_eq!(window.used(), 3);
        assert_eq!(window.touch(touch(9, 2, 0)), Answer::Given(2, None));
    }

    #[test]
    fn pages_of_an_owner_are_taken_back() {
        let mut window = full();
        let mut taken = [0; 2];
        assert_eq!(window.take_back(&mut taken, |owner| *owner != 1), 2);
        assert_eq!(taken, [0, 2]);
        assert_eq!(window.take_back(&mut taken, |owner| *owner != 1), 1);
        assert_eq!(window.used(), 1);
        assert!(window.owners().eq([(1, 1)]));
        assert_eq!(window.touch(touch(1, 2, 0)), Answer::Shown(1));
    }

    #[test]
    fn others_wait_while_a_turn_lasts() {
        let mut window = full();
        assert_eq!(window.touch(touch(9, 1, 0)), Answer::Given(0, Some(0)));
        assert_eq!(window.touch(touch(10, 2, 5)), Answer::Wait(10));
        assert_eq!(window.touch(touch(3, 2, 5)), Answer::Shown(3));
        assert_eq!(window.touch(touch(10, 2, 10)), Answer::Given(1, Some(1)));
        assert_eq!(window.touch(touch(11, 1, 11)), Answer::Wait(20));
    }

    #[test]
    fn lease_is_renewed_up_to_the_end_of_the_turn() {
        let mut window = full();
        let mut now = 0;
        while now < 100 {
            let page = 9 + (now as u32 / 9) % 16;
            assert!(matches!(
                window.touch(touch(page, 1, now)),
                Answer::Given(..)
            ));
            assert!(matches!(window.touch(touch(30, 2, now)), Answer::Wait(_)));
            now += 9;
        }
        assert!(matches!(window.touch(touch(29, 1, 100)), Answer::Wait(110)));
        assert!(matches!(window.touch(touch(30, 2, 100)), Answer::Given(..)));
    }

    #[test]
    fn turn_of_a_task_that_does_not_come_is_free() {
        let mut window = full();
        let _ = window.touch(touch(9, 1, 0));
        let _ = window.touch(touch(10, 2, 0));
        assert_eq!(window.touch(touch(11, 1, 15)), Answer::Wait(20));
        assert!(matches!(window.touch(touch(11, 1, 20)), Answer::Given(..)));
    }

    #[test]
    fn pages_of_the_turn_go_last() {
        let mut window = full();
        let _ = window.touch(touch(9, 1, 0));
        for page in [1, 2, 3] {
            let _ = window.touch(touch(page, 2, 0));
        }
        // Page 9 is the oldest now, and stays.
        assert_eq!(window.touch(touch(10, 1, 1)), Answer::Given(1, Some(1)));
        assert_eq!(window.touch(touch(11, 1, 1)), Answer::Given(2, Some(2)));
        assert_eq!(window.touch(touch(12, 1, 1)), Answer::Given(3, Some(3)));
        assert_eq!(window.touch(touch(13, 1, 1)), Answer::Given(0, Some(9)));
    }
}
