// SPDX-License-Identifier: GPL-2.0

//! What the kernel tells a client whose memory is wanted: its budget, and the events about it.

use libvidmm::{
    abi,
    events::{
        Event,
        Subscription, //
    },
    Adapter,
    Group, //
};
use serde::Serialize;

use super::place::Place;
use crate::failure::Failure;

/// A client that watches its budget.
pub(crate) struct Watch<'a> {
    adapter: &'a Adapter,
    group: Group,
    seen: Option<Pressure>,
}

/// What was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Pressure {
    pub(crate) least_budget_bytes: u64,
    pub(crate) most_budget_bytes: u64,
    pub(crate) most_usage_bytes: u64,
    pub(crate) budget_events: u64,
    pub(crate) trim_events: u64,
    /// The most that the kernel asked for at once.
    pub(crate) most_trim_bytes: u64,
}

impl<'a> Watch<'a> {
    /// Subscribes, on an adapter that has budgets. `adapter` does not wait for events.
    pub(crate) fn begin(adapter: &'a Adapter, place: &Place) -> Result<Self, Failure> {
        let group = Group::from_value(place.segment.group).unwrap_or(Group::Local);
        let mut watch = Self {
            adapter,
            group,
            seen: None,
        };
        if adapter.has(abi::FEATURE_BUDGET_EVENTS)? {
            adapter.subscribe(Subscription::new().budget().trim())?;
            let budget = adapter.budget(group)?;
            watch.seen = Some(Pressure {
                least_budget_bytes: budget.budget,
                ..Default::default()
            });
        }
        watch.look()?;
        Ok(watch)
    }

    /// Looks at the budget and takes what events there are.
    pub(crate) fn look(&mut self) -> Result<(), Failure> {
        let Some(seen) = &mut self.seen else {
            return Ok(());
        };
        let now = self.adapter.budget(self.group)?;
        seen.note(now.budget, now.usage);
        for record in self.adapter.events() {
            match record?.event {
                Event::Budget {
                    group,
                    budget,
                    usage,
                } if group == self.group => {
                    seen.budget_events += 1;
                    seen.note(budget, usage);
                }
                Event::Trim { group, bytes, .. } if group == self.group => {
                    seen.trim_events += 1;
                    seen.most_trim_bytes = seen.most_trim_bytes.max(bytes);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns what was seen; nothing on an adapter without budgets.
    pub(crate) fn end(mut self) -> Result<Option<Pressure>, Failure> {
        self.look()?;
        if self.seen.is_some() {
            self.adapter.subscribe(Subscription::new())?;
        }
        Ok(self.seen)
    }
}

impl Pressure {
    fn note(&mut self, budget: u64, usage: u64) {
        self.least_budget_bytes = self.least_budget_bytes.min(budget);
        self.most_budget_bytes = self.most_budget_bytes.max(budget);
        self.most_usage_bytes = self.most_usage_bytes.max(usage);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budget_is_kept_from_least_to_most() {
        let mut seen = Pressure {
            least_budget_bytes: 16,
            ..Default::default()
        };

        for (budget, usage) in [(16, 4), (12, 14), (15, 9)] {
            seen.note(budget, usage);
        }

        assert_eq!((seen.least_budget_bytes, seen.most_budget_bytes), (12, 16));
        assert_eq!(seen.most_usage_bytes, 14);
    }
}
