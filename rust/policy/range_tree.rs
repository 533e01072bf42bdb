// SPDX-License-Identifier: GPL-2.0

//! A tree of ranges that do not overlap, and of the gaps between them.
//!
//! A balanced binary tree (AVL) whose nodes lie in an array that the caller lends, and name each
//! other by their places in it. Each node knows its neighbours by address too, so that the gap
//! before it is known at once, and the longest gap in the tree below it. So the range at an
//! address, and the lowest gap of a length, are found on one way down: O(log n), as are inserting
//! and removing.
//!
//! A tree is its root alone; several can share one array. The nodes belong to
//! [`super::mapping`], which says what a range means.

use core::ops::Range;

/// Names no node.
pub(super) const NIL: u32 = u32::MAX;

/// A side of a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

impl Side {
    fn other(self) -> Self {
        match self {
            Self::Left => Self::Right,
            Self::Right => Self::Left,
        }
    }
}

/// What a node is in its tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    /// The first address of its range.
    pub(super) start: u64,
    /// The first address behind it.
    pub(super) end: u64,
    /// The longest gap before a node of the tree of which this one is the root.
    longest: u64,
    /// The node below it with lower addresses.
    left: u32,
    /// The node below it with higher addresses.
    right: u32,
    /// The node above it.
    parent: u32,
    /// The range before it by address.
    prev: u32,
    /// The range behind it by address.
    next: u32,
    /// The levels of the tree of which it is the root.
    height: u8,
}

impl Link {
    /// A node of no tree with this range.
    pub(super) const fn new(range: Range<u64>) -> Self {
        Self {
            start: range.start,
            end: range.end,
            longest: 0,
            left: NIL,
            right: NIL,
            parent: NIL,
            prev: NIL,
            next: NIL,
            height: 1,
        }
    }

    /// Returns the range.
    pub(super) const fn range(&self) -> Range<u64> {
        self.start..self.end
    }

    /// Returns the range behind it by address.
    pub(super) const fn next(&self) -> u32 {
        self.next
    }

    /// Returns the range before it by address.
    pub(super) const fn prev(&self) -> u32 {
        self.prev
    }

    fn child(&self, side: Side) -> u32 {
        match side {
            Side::Left => self.left,
            Side::Right => self.right,
        }
    }

    fn set_child(&mut self, side: Side, child: u32) {
        match side {
            Side::Left => self.left = child,
            Side::Right => self.right = child,
        }
    }
}

/// Something in an array that can be a node of a tree.
pub(super) trait Node {
    /// Returns its links.
    fn link(&self) -> &Link;

    /// Returns its links, to be changed.
    fn link_mut(&mut self) -> &mut Link;
}

/// Returns the links of a node.
pub(super) fn link<N: Node>(nodes: &[N], at: u32) -> Option<&Link> {
    // CAST: `usize` has 64 bits wherever this driver runs.
    nodes.get(at as usize).map(Node::link)
}

/// Changes the links of a node, if there is one.
fn change<N: Node>(nodes: &mut [N], at: u32, what: impl FnOnce(&mut Link)) {
    // CAST: `usize` has 64 bits wherever this driver runs.
    if let Some(node) = nodes.get_mut(at as usize) {
        what(node.link_mut());
    }
}

/// A tree in an array of nodes.
///
/// # Invariants
///
/// The ranges of its nodes do not overlap and rise from left to right; the heights of the two trees
/// below a node differ by one at most; `prev` and `next` are the neighbours by address; `longest`
/// is what it says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tree {
    root: u32,
}

impl Tree {
    /// A tree without nodes.
    pub(super) const EMPTY: Self = Self { root: NIL };

    /// Returns the range that contains `address`, or else the first one behind it.
    pub(super) fn at_or_behind<N: Node>(self, nodes: &[N], address: u64) -> Option<u32> {
        let mut best = None;
        let mut at = self.root;
        while let Some(node) = link(nodes, at) {
            if node.end > address {
                best = Some(at);
                at = node.left;
            } else {
                at = node.right;
            }
        }
        best
    }

    /// Returns the last range.
    pub(super) fn last<N: Node>(self, nodes: &[N]) -> Option<u32> {
        let mut best = None;
        let mut at = self.root;
        while let Some(node) = link(nodes, at) {
            best = Some(at);
            at = node.right;
        }
        best
    }

    /// Returns the lowest multiple of `align`, a power of two, at which `bytes` bytes are free inside
    /// `window`.
    ///
    /// O(log n), and a step more for each gap of that length that has no room at such an address.
    pub(super) fn find_gap<N: Node>(
        self,
        nodes: &[N],
        window: Range<u64>,
        bytes: u64,
        align: u64,
    ) -> Option<u64> {
        let fits = |from: u64, to: u64| {
            let mask = align.max(1).wrapping_sub(1);
            let start = from.max(window.start).checked_add(mask)? & !mask;
            let end = start.checked_add(bytes)?;
            (end <= to.min(window.end)).then_some(start)
        };
        let mut next = self.gap_behind(nodes, window.start, bytes);
        while let Some(at) = next {
            let node = link(nodes, at)?;
            if let Some(start) = fits(end_before(nodes, node), node.start) {
                return Some(start);
            }
            if node.start >= window.end {
                return None;
            }
            next = self.next_gap(nodes, at, bytes);
        }
        let last = self.last(nodes).and_then(|at| link(nodes, at));
        fits(last.map_or(0, |node| node.end), u64::MAX)
    }

    /// Returns the first range that begins behind `address` and has a gap of `bytes` before it.
    fn gap_behind<N: Node>(self, nodes: &[N], address: u64, bytes: u64) -> Option<u32> {
        let mut first = None;
        let mut at = self.root;
        while let Some(node) = link(nodes, at) {
            if node.start > address {
                first = Some(at);
                at = node.left;
            } else {
                at = node.right;
            }
        }
        let first = first?;
        if gap(nodes, link(nodes, first)?) >= bytes {
            return Some(first);
        }
        self.next_gap(nodes, first, bytes)
    }

    /// Returns the next range behind `at` that has a gap of `bytes` before it.
    fn next_gap<N: Node>(self, nodes: &[N], at: u32, bytes: u64) -> Option<u32> {
        let mut at = at;
        loop {
            let node = link(nodes, at)?;
            if let Some(found) = lowest_gap(nodes, node.right, bytes) {
                return Some(found);
            }
            // Up, as long as everything of the node above is before this one.
            let mut above = link(nodes, node.parent)?;
            while above.right == at {
                at = link(nodes, at)?.parent;
                above = link(nodes, above.parent)?;
            }
            at = link(nodes, at)?.parent;
            if gap(nodes, above) >= bytes {
                return Some(at);
            }
        }
    }

    /// Inserts the node `new`, which is in no tree and whose range meets no other.
    pub(super) fn insert<N: Node>(&mut self, nodes: &mut [N], new: u32) {
        let Some(range) = link(nodes, new).map(Link::range) else {
            return;
        };
        let mut place = Link::new(range);
        let mut side = Side::Left;
        let mut at = self.root;
        while let Some(node) = link(nodes, at) {
            place.parent = at;
            if place.start < node.start {
                (side, place.next) = (Side::Left, at);
            } else {
                (side, place.prev) = (Side::Right, at);
            }
            at = node.child(side);
        }
        change(nodes, new, |node| *node = place);
        change(nodes, place.prev, |prev| prev.next = new);
        change(nodes, place.next, |next| next.prev = new);
        if place.parent == NIL {
            self.root = new;
        }
        change(nodes, place.parent, |parent| parent.set_child(side, new));
        self.mend(nodes, new);
    }

    /// Takes the node `at` out.
    pub(super) fn remove<N: Node>(&mut self, nodes: &mut [N], at: u32) {
        let Some(&old) = link(nodes, at) else {
            return;
        };
        change(nodes, old.prev, |prev| prev.next = old.next);
        change(nodes, old.next, |next| next.prev = old.prev);
        let from = if old.left == NIL || old.right == NIL {
            let child = if old.left == NIL { old.right } else { old.left };
            self.replace(nodes, old.parent, at, child);
            if child == NIL {
                old.parent
            } else {
                child
            }
        } else {
            self.put_next_in_place(nodes, at, &old)
        };
        change(nodes, at, |node| *node = Link::new(old.range()));
        self.mend(nodes, from);
    }

    /// Puts the next range in the place of `at`, which has nodes below it on both sides; returns the
    /// lowest node below which something has changed.
    fn put_next_in_place<N: Node>(&mut self, nodes: &mut [N], at: u32, old: &Link) -> u32 {
        let next = old.next;
        let Some(&heir) = link(nodes, next) else {
            return NIL;
        };
        let mut from = next;
        if heir.parent != at {
            from = heir.parent;
            self.replace(nodes, heir.parent, next, heir.right);
            change(nodes, next, |heir| heir.right = old.right);
            change(nodes, old.right, |right| right.parent = next);
        }
        change(nodes, next, |heir| heir.left = old.left);
        change(nodes, old.left, |left| left.parent = next);
        self.replace(nodes, old.parent, at, next);
        from
    }

    /// Changes the range of the node `at`, which stays between its neighbours.
    pub(super) fn resize<N: Node>(&mut self, nodes: &mut [N], at: u32, range: Range<u64>) {
        change(nodes, at, |node| {
            node.start = range.start;
            node.end = range.end;
        });
        let next = link(nodes, at).map_or(NIL, Link::next);
        self.mend(nodes, at);
        self.mend(nodes, next);
    }

    /// Makes `new` the child of `parent` that `old` was; without a parent, the root.
    fn replace<N: Node>(&mut self, nodes: &mut [N], parent: u32, old: u32, new: u32) {
        if parent == NIL {
            self.root = new;
        }
        change(nodes, parent, |parent| {
            if parent.left == old {
                parent.left = new;
            } else {
                parent.right = new;
            }
        });
        change(nodes, new, |new| new.parent = parent);
    }

    /// Balances `at` and all nodes above it, and brings what they know up to date.
    fn mend<N: Node>(&mut self, nodes: &mut [N], at: u32) {
        let mut at = at;
        while at != NIL {
            sum_up(nodes, at);
            at = self.balance(nodes, at);
            at = link(nodes, at).map_or(NIL, |node| node.parent);
        }
    }

    /// Balances the tree below `at`; returns its root.
    fn balance<N: Node>(&mut self, nodes: &mut [N], at: u32) -> u32 {
        let Some(&node) = link(nodes, at) else {
            return NIL;
        };
        let (left, right) = (height(nodes, node.left), height(nodes, node.right));
        let high = if left > right.saturating_add(1) {
            Side::Left
        } else if right > left.saturating_add(1) {
            Side::Right
        } else {
            return at;
        };
        let child = node.child(high);
        let Some(&below) = link(nodes, child) else {
            return at;
        };
        let inner = height(nodes, below.child(high.other()));
        if inner > height(nodes, below.child(high)) {
            self.rotate(nodes, child, high);
        }
        self.rotate(nodes, at, high.other())
    }

    /// Turns `at` down to `side`: its child on the other side takes its place, and is returned.
    fn rotate<N: Node>(&mut self, nodes: &mut [N], at: u32, side: Side) -> u32 {
        let Some(&node) = link(nodes, at) else {
            return NIL;
        };
        let up = node.child(side.other());
        let Some(&rising) = link(nodes, up) else {
            return at;
        };
        let inner = rising.child(side);
        self.replace(nodes, node.parent, at, up);
        change(nodes, at, |node| {
            node.parent = up;
            node.set_child(side.other(), inner);
        });
        change(nodes, inner, |inner| inner.parent = at);
        change(nodes, up, |up| up.set_child(side, at));
        sum_up(nodes, at);
        sum_up(nodes, up);
        up
    }
}

/// Returns the levels of the tree whose root is `at`.
fn height<N: Node>(nodes: &[N], at: u32) -> u8 {
    link(nodes, at).map_or(0, |node| node.height)
}

/// Returns the end of the range before a node, 0 if it is the first.
fn end_before<N: Node>(nodes: &[N], node: &Link) -> u64 {
    link(nodes, node.prev).map_or(0, |prev| prev.end)
}

/// Returns the length of the gap before a node.
fn gap<N: Node>(nodes: &[N], node: &Link) -> u64 {
    node.start.saturating_sub(end_before(nodes, node))
}

/// Returns the longest gap before a node of the tree whose root is `at`.
fn longest<N: Node>(nodes: &[N], at: u32) -> u64 {
    link(nodes, at).map_or(0, |node| node.longest)
}

/// Returns the first node of the tree whose root is `at` that has a gap of `bytes` before it.
fn lowest_gap<N: Node>(nodes: &[N], at: u32, bytes: u64) -> Option<u32> {
    let mut at = at;
    if longest(nodes, at) < bytes {
        return None;
    }
    while let Some(node) = link(nodes, at) {
        if node.left != NIL && longest(nodes, node.left) >= bytes {
            at = node.left;
        } else if gap(nodes, node) >= bytes {
            return Some(at);
        } else {
            at = node.right;
        }
    }
    None
}

/// Brings what `at` knows of the nodes below it up to date.
fn sum_up<N: Node>(nodes: &mut [N], at: u32) {
    let Some(&node) = link(nodes, at) else {
        return;
    };
    let below = height(nodes, node.left).max(height(nodes, node.right));
    let longest = longest(nodes, node.left)
        .max(longest(nodes, node.right))
        .max(gap(nodes, &node));
    change(nodes, at, |node| {
        node.height = below.saturating_add(1);
        node.longest = longest;
    });
}

#[cfg_attr(CONFIG_KUNIT, kernel::macros::kunit_tests(vidmm_policy_range_tree))]
#[cfg(any(test, CONFIG_KUNIT))]
mod tests {
    use super::*;

    /// A node and nothing else.
    #[derive(Clone, Copy)]
    struct Bare(Link);

    impl Node for Bare {
        fn link(&self) -> &Link {
            &self.0
        }

        fn link_mut(&mut self) -> &mut Link {
            &mut self.0
        }
    }

    const COUNT: usize = 64;

    /// Nodes for the ranges `10 n..10 n + 4`, in the order of `order`.
    fn planted(order: impl Iterator<Item = u32>) -> ([Bare; COUNT], Tree) {
        let mut nodes = [Bare(Link::new(0..0)); COUNT];
        let mut tree = Tree::EMPTY;
        for (place, number) in order.enumerate() {
            let start = u64::from(number) * 10;
            nodes[place] = Bare(Link::new(start..start + 4));
            tree.insert(&mut nodes, u32::try_from(place).unwrap());
        }
        (nodes, tree)
    }

    /// Checks the invariants below `at`; returns how many nodes there are.
    fn check(nodes: &[Bare], at: u32, parent: u32) -> u32 {
        let Some(node) = link(nodes, at) else {
            return 0;
        };
        assert_eq!(node.parent, parent);
        let heights = [height(nodes, node.left), height(nodes, node.right)];
        assert!(heights[0].abs_diff(heights[1]) <= 1);
        assert_eq!(node.height, heights[0].max(heights[1]) + 1);
        let below = longest(nodes, node.left).max(longest(nodes, node.right));
        assert_eq!(node.longest, below.max(gap(nodes, node)));
        check(nodes, node.left, at) + check(nodes, node.right, at) + 1
    }

    /// The starts of the ranges in order.
    fn starts(nodes: &[Bare], tree: Tree) -> impl Iterator<Item = u64> + '_ {
        let mut at = tree.at_or_behind(nodes, 0).unwrap_or(NIL);
        core::iter::from_fn(move || {
            let node = link(nodes, at)?;
            at = node.next;
            Some(node.start)
        })
    }

    #[test]
    fn any_order_of_insertion_gives_a_balanced_tree() {
        let count = 64;
        let orders: [fn(u32) -> u32; 4] = [|n| n, |n| 63 - n, |n| n * 37 % 64, |n| n ^ 21];
        for order in orders {
            let (nodes, tree) = planted((0..count).map(order));
            assert_eq!(check(&nodes, tree.root, NIL), count);
            assert!(starts(&nodes, tree).eq((0..64).map(|n| n * 10)));
            assert!(height(&nodes, tree.root) <= 8);
        }
    }

    #[test]
    fn any_order_of_removal_keeps_the_rest() {
        let (mut nodes, mut tree) = planted(0..64);
        for step in 0..64 {
            let victim = step * 29 % 64;
            tree.remove(&mut nodes, victim);
            assert_eq!(check(&nodes, tree.root, NIL), 63 - step);
        }
        assert!(tree.at_or_behind(&nodes, 0).is_none());
    }

    #[test]
    fn range_at_an_address_or_behind_it_is_found() {
        let (nodes, tree) = planted(0..20);
        assert_eq!(tree.at_or_behind(&nodes, 53), Some(5));
        assert_eq!(tree.at_or_behind(&nodes, 54), Some(6));
        assert_eq!(tree.at_or_behind(&nodes, 194), None);
        assert_eq!(tree.last(&nodes), Some(19));
    }

    #[test]
    fn lowest_gap_is_found() {
        let (mut nodes, mut tree) = planted(0..30);
        assert_eq!(tree.find_gap(&nodes, 0..1000, 6, 1), Some(4));
        assert_eq!(tree.find_gap(&nodes, 7..1000, 6, 1), Some(14));
        assert_eq!(tree.find_gap(&nodes, 0..1000, 7, 1), Some(294));
        tree.remove(&mut nodes, 17);
        assert_eq!(tree.find_gap(&nodes, 0..1000, 7, 1), Some(164));
        assert_eq!(tree.find_gap(&nodes, 0..1000, 16, 1), Some(164));
        assert_eq!(tree.find_gap(&nodes, 0..1000, 17, 1), Some(294));
        assert_eq!(tree.find_gap(&nodes, 0..300, 17, 1), None);
    }

    #[test]
    fn gap_without_room_at_a_multiple_is_skipped() {
        let (nodes, tree) = planted(0..30);
        assert_eq!(tree.find_gap(&nodes, 0..1000, 4, 8), Some(16));
        assert_eq!(tree.find_gap(&nodes, 0..1000, 6, 16), Some(64));
        assert_eq!(tree.find_gap(&nodes, 0..1000, 6, 256), Some(512));
    }

    #[test]
    fn empty_tree_is_one_gap() {
        let nodes: [Bare; 0] = [];
        assert_eq!(Tree::EMPTY.find_gap(&nodes, 5..20, 10, 8), Some(8));
        assert_eq!(Tree::EMPTY.find_gap(&nodes, 5..20, 13, 8), None);
    }

    #[test]
    fn resized_range_changes_the_gaps_beside_it() {
        let (mut nodes, mut tree) = planted(0..10);
        tree.resize(&mut nodes, 5, 53..54);
        assert_eq!(check(&nodes, tree.root, NIL), 10);
        assert_eq!(tree.find_gap(&nodes, 0..90, 9, 1), Some(44));
        tree.resize(&mut nodes, 5, 50..51);
        assert_eq!(check(&nodes, tree.root, NIL), 10);
        assert_eq!(tree.find_gap(&nodes, 0..90, 9, 1), Some(51));
    }
}
