// SPDX-License-Identifier: GPL-2.0

//! A tree that knows where runs of free pages are.
//!
//! One bit per page says whether it is free. A binary tree above the bits sums them up: a node
//! knows of its stretch of pages how long the longest free run is, and how long the free runs at
//! its two ends are. Two neighbouring summaries join into the summary of both ([`Summary::then`]),
//! so that
//!
//! - the longest free run of everything is read off the root,
//! - the lowest run of a given length is found in one way down the tree,
//! - any range is summed up from a logarithmic number of nodes.
//!
//! A run is found wherever it lies, whatever its length: the tree knows no blocks, sizes are not
//! rounded, and the answer is exact. That is what sets it apart from a buddy allocator.
//!
//! To work from the top, the same searches run over a mirrored view: positions count from the other
//! end, left and right change places, and bits are reversed. The mirror is a constant of
//! [`View`]'s type, so neither direction pays for the other.
//!
//! This file reads the tree; [`super::free_runs`] owns and changes it. Both are on the way of every
//! placement. No sum of page numbers reaches 2^32, because a tree has at most [`MAX_PAGES`] pages:
//! that is meant where arithmetic is said to wrap.

use core::ops::Range;

/// Pages per bitmap word; one leaf of the tree is one word.
pub(super) const LEAF_PAGES: u32 = u64::BITS;

/// The most pages a map can hold (8 TiB of memory).
pub const MAX_PAGES: u32 = 1 << 31;

/// Returns `value` as an index.
pub(super) const fn index(value: u32) -> usize {
    // CAST: `usize` has 64 bits wherever this driver runs.
    value as usize
}

/// Returns a word with its lowest `count` bits set.
pub(super) const fn low_ones(count: u32) -> u64 {
    if count >= u64::BITS {
        u64::MAX
    } else {
        (1 << count) - 1
    }
}

/// What the tree knows about a stretch of pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Summary {
    /// The length of the stretch.
    pub(super) pages: u32,
    /// Free pages at its beginning.
    pub(super) leading: u32,
    /// Free pages at its end.
    pub(super) trailing: u32,
    /// The length of its longest free run.
    pub(super) longest: u32,
}

impl Summary {
    /// Sums up a bitmap word; a set bit is a free page.
    pub(super) fn of_word(word: u64) -> Self {
        Self {
            pages: LEAF_PAGES,
            leading: word.trailing_ones(),
            trailing: word.leading_ones(),
            longest: longest_ones(word),
        }
    }

    /// Sums up the lowest `width` bits of a bitmap word.
    pub(super) fn of_bits(bits: u64, width: u32) -> Self {
        let bits = bits & low_ones(width);
        let high = bits.wrapping_shl(LEAF_PAGES.saturating_sub(width));
        Self {
            pages: width,
            leading: bits.trailing_ones(),
            trailing: high.leading_ones().min(width),
            longest: longest_ones(bits),
        }
    }

    /// Sums up this stretch and the one right behind it.
    #[inline]
    pub(super) fn then(self, next: Self) -> Self {
        let leading = if self.leading == self.pages {
            self.pages.wrapping_add(next.leading)
        } else {
            self.leading
        };
        let trailing = if next.trailing == next.pages {
            next.pages.wrapping_add(self.trailing)
        } else {
            next.trailing
        };
        let across = self.trailing.wrapping_add(next.leading);
        Self {
            pages: self.pages.wrapping_add(next.pages),
            leading,
            trailing,
            longest: self.longest.max(next.longest).max(across),
        }
    }

    /// Reads what [`packed`](Self::packed) gave for a stretch of `pages` pages.
    #[inline]
    pub(super) const fn unpack(node: [u64; 2], pages: u32) -> Self {
        let [ends, inner] = node;
        // CAST: each half holds 32 bits.
        Self {
            pages,
            leading: ends as u32,
            trailing: (ends >> 32) as u32,
            longest: inner as u32,
        }
    }

    /// Returns the words that a node holds.
    #[inline]
    pub(super) fn packed(self) -> [u64; 2] {
        let ends = u64::from(self.leading) | u64::from(self.trailing) << 32;
        [ends, self.longest.into()]
    }
}

/// Returns the length of the longest run of ones in `bits`.
fn longest_ones(bits: u64) -> u32 {
    // Most words have one run.
    let run = bits.checked_shr(bits.trailing_zeros()).unwrap_or(0);
    if run & run.wrapping_add(1) == 0 {
        return run.trailing_ones();
    }
    // The element for 2^n has a bit wherever 2^n ones begin.
    let mut powers = [0; 7];
    let mut starts = bits;
    let mut step: u32 = 1;
    for place in &mut powers {
        *place = starts;
        starts &= starts.wrapping_shr(step);
        step = step.wrapping_mul(2);
    }
    // The length is put together from its largest power of two down.
    let mut length: u32 = 0;
    let mut starts = u64::MAX;
    let mut step = LEAF_PAGES;
    for power in powers.iter().rev() {
        let longer = starts & power.checked_shr(length).unwrap_or(0);
        if longer != 0 {
            starts = longer;
            length = length.wrapping_add(step);
        }
        step /= 2;
    }
    length
}

/// Returns the lowest position in `bits` where `need` ones (1 to 64) follow each other.
fn lowest_ones(bits: u64, need: u32) -> Option<u32> {
    let mut starts = bits;
    let mut have: u32 = 1;
    // A bit of `starts` is set where `have` ones begin; `have` at most doubles per step.
    while have < need {
        let step = have.min(need.saturating_sub(have));
        starts &= starts.wrapping_shr(step);
        have = have.saturating_add(step);
    }
    (starts != 0).then(|| starts.trailing_zeros())
}

/// The first piece of a range that the tree can answer for at once.
struct Piece {
    /// What is known about it.
    summary: Summary,
    /// Where to look inside it.
    inside: Inside,
}

/// The content of a [`Piece`].
enum Inside {
    /// A node of the tree.
    Node(u32),
    /// Some bits of one word, shifted down to bit 0.
    Bits(u64),
}

/// The tree as seen from its low end, or from its high end if `HIGH`.
///
/// Positions count pages from that end. Nodes are numbered as in a heap: the root is 1, the
/// children of `n` are `2n` and `2n + 1`, the leaves begin at `leaves`.
#[derive(Clone, Copy)]
pub(super) struct View<'a, const HIGH: bool> {
    /// The bitmap, one word per leaf; a set bit is a free page.
    bits: &'a [u64],
    /// The inner nodes, two words each; the one with number 0 does not exist.
    nodes: &'a [u64],
    /// The number of leaves, a power of two.
    leaves: u32,
}

impl<'a, const HIGH: bool> View<'a, HIGH> {
    /// Looks at the words of a tree of `leaves` leaves.
    pub(super) fn new(words: &'a [u64], leaves: u32) -> Self {
        let (bits, nodes) = words.split_at_checked(index(leaves)).unwrap_or_default();
        Self {
            bits,
            nodes,
            leaves,
        }
    }

    /// Returns the number of positions.
    fn span(&self) -> u32 {
        self.leaves.wrapping_mul(LEAF_PAGES)
    }

    /// Turns a range of pages into a range of positions, or the other way round.
    pub(super) fn turn(&self, range: &Range<u32>) -> Range<u32> {
        if HIGH {
            let span = self.span();
            span.saturating_sub(range.end)..span.saturating_sub(range.start)
        } else {
            range.clone()
        }
    }

    /// Returns the bits of a leaf, lowest position first.
    fn word(&self, leaf: u32) -> u64 {
        let word = self.bits.get(index(leaf)).copied().unwrap_or(0);
        if HIGH {
            word.reverse_bits()
        } else {
            word
        }
    }

    /// Returns the summary of a node of `pages` pages.
    #[inline]
    fn summary(&self, node: u32, pages: u32) -> Summary {
        if let Some(leaf) = node.checked_sub(self.leaves) {
            return Summary::of_word(self.word(leaf));
        }
        let at = index(node).wrapping_mul(2);
        let sum = match self.nodes.get(at..at.wrapping_add(2)) {
            Some(&[ends, inner]) => Summary::unpack([ends, inner], pages),
            _ => Summary::unpack([0, 0], pages),
        };
        if HIGH {
            Summary {
                leading: sum.trailing,
                trailing: sum.leading,
                ..sum
            }
        } else {
            sum
        }
    }

    /// Returns the summary of everything.
    pub(super) fn root(&self) -> Summary {
        self.summary(1, self.span())
    }

    /// Returns the nearer and the farther child of a node.
    fn children(node: u32) -> (u32, u32) {
        let left = node.wrapping_mul(2);
        let right = left.wrapping_add(1);
        if HIGH {
            (right, left)
        } else {
            (left, right)
        }
    }

    /// Returns the largest piece at the beginning of `range`, which is not empty.
    fn piece(&self, range: &Range<u32>) -> Piece {
        let position = range.start / LEAF_PAGES;
        let leaf = if HIGH {
            self.leaves.wrapping_sub(position).wrapping_sub(1)
        } else {
            position
        };
        let bit = range.start % LEAF_PAGES;
        let pages = range.end.wrapping_sub(range.start);
        if bit != 0 || pages < LEAF_PAGES {
            let bits = self.word(leaf).wrapping_shr(bit);
            let width = pages.min(LEAF_PAGES.wrapping_sub(bit));
            return Piece {
                summary: Summary::of_bits(bits, width),
                inside: Inside::Bits(bits & low_ones(width)),
            };
        }
        // A node this many levels above the leaf begins here and ends inside the range.
        let within = (pages / LEAF_PAGES).checked_ilog2().unwrap_or(0);
        let up = (position | self.leaves).trailing_zeros().min(within);
        let node = self.leaves.wrapping_add(leaf).wrapping_shr(up);
        Piece {
            summary: self.summary(node, LEAF_PAGES.wrapping_shl(up)),
            inside: Inside::Node(node),
        }
    }

    /// Sums up a range of positions.
    pub(super) fn survey(&self, range: Range<u32>) -> Summary {
        let mut rest = range;
        let mut sum = Summary::default();
        while rest.start < rest.end {
            let piece = self.piece(&rest).summary;
            sum = sum.then(piece);
            rest.start = rest.start.wrapping_add(piece.pages);
        }
        sum
    }

    /// Returns the number of free pages at the beginning of a range of positions.
    pub(super) fn leading(&self, range: Range<u32>) -> u32 {
        let mut rest = range.clone();
        while rest.start < rest.end {
            let piece = self.piece(&rest).summary;
            rest.start = rest.start.wrapping_add(piece.leading);
            if piece.leading < piece.pages {
                break;
            }
        }
        rest.start.saturating_sub(range.start)
    }

    /// Returns the first position in `range` at which `need` free pages follow each other inside
    /// it.
    pub(super) fn first(&self, range: Range<u32>, need: u32) -> Option<u32> {
        let mut rest = range;
        // Free pages right before `rest`.
        let mut before: u32 = 0;
        while rest.start < rest.end {
            let piece = self.piece(&rest);
            let summary = piece.summary;
            if before.wrapping_add(summary.leading) >= need {
                return Some(rest.start.wrapping_sub(before));
            }
            if summary.longest >= need {
                let offset = match piece.inside {
                    Inside::Bits(bits) => lowest_ones(bits, need),
                    Inside::Node(node) => self.descend(node, summary.pages, need),
                };
                return Some(rest.start.wrapping_add(offset?));
            }
            before = if summary.trailing == summary.pages {
                before.wrapping_add(summary.pages)
            } else {
                summary.trailing
            };
            rest.start = rest.start.wrapping_add(summary.pages);
        }
        None
    }

    /// Returns where below `node`, which has `pages` pages and such a run, the first `need` free
    /// pages begin.
    fn descend(&self, node: u32, pages: u32, need: u32) -> Option<u32> {
        let mut node = node;
        let mut half = pages / 2;
        let mut offset: u32 = 0;
        while node < self.leaves {
            let (near, far) = Self::children(node);
            let near_sum = self.summary(near, half);
            node = near;
            if near_sum.longest < need {
                offset = offset.wrapping_add(half);
                let leading = self.summary(far, half).leading;
                if near_sum.trailing.wrapping_add(leading) >= need {
                    return offset.checked_sub(near_sum.trailing);
                }
                node = far;
            }
            half /= 2;
        }
        let word = self.word(node.wrapping_sub(self.leaves));
        offset.checked_add(lowest_ones(word, need)?)
    }
}

#[cfg_attr(CONFIG_KUNIT, kernel::macros::kunit_tests(vidmm_policy_run_tree))]
#[cfg(any(test, CONFIG_KUNIT))]
mod tests {
    use super::*;

    #[test]
    fn summary_of_bits_obeys_its_width() {
        let sum = Summary::of_bits(0b1110_0110_1111, 11);
        assert_eq!(sum.pages, 11);
        assert_eq!((sum.leading, sum.trailing), (4, 2));
        assert_eq!(sum.longest, 4);
    }

    #[test]
    fn joined_summaries_know_the_run_across() {
        let sum = Summary::of_bits(0b1100, 4).then(Summary::of_bits(0b0111, 4));
        assert_eq!((sum.pages, sum.longest), (8, 5));
        assert_eq!((sum.leading, sum.trailing), (0, 0));
        let whole = Summary::of_bits(0b1111, 4);
        assert_eq!(whole.then(whole), Summary::of_bits(0xff, 8));
    }

    #[test]
    fn bits_of_one_word() {
        assert_eq!(longest_ones(0), 0);
        assert_eq!(longest_ones(u64::MAX), 64);
        assert_eq!(longest_ones(0b1110_1111_0111), 4);
        assert_eq!(lowest_ones(0b1110_1111_0111, 4), Some(4));
        assert_eq!(lowest_ones(u64::MAX, 64), Some(0));
        assert_eq!(lowest_ones(u64::MAX >> 1, 64), None);
    }
}
