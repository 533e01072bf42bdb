// SPDX-License-Identifier: GPL-2.0

//! The named shapes of the software engine.
//!
//! A profile is written in the language of the parameters, so it can say nothing that a user could
//! not say as well, and goes through the same rules.

/// A value for every parameter that depends on the profile.
pub(super) struct Profile {
    /// How it is called.
    pub(super) name: &'static str,
    /// Parameter `segments`.
    pub(super) segments: &'static str,
    /// Parameter `nodes`.
    pub(super) nodes: &'static str,
    /// Parameter `levels`.
    pub(super) levels: u32,
    /// Parameter `update_mode`.
    pub(super) update_mode: u32,
    /// Parameters `client_tables` and `paging_tables`.
    pub(super) tables: u32,
    /// Parameters `save_restore` and `preemption`.
    pub(super) saves_context: bool,
    /// Parameter `companion`.
    pub(super) companion: Option<u32>,
    /// Parameter `scratch`.
    pub(super) scratch: u64,
}

/// The segments of a discrete GPU.
const DISCRETE_SEGMENTS: &str = "memory:16M:page=4K:visible:contiguous=16M:scanout:budget,\
     memory:16M:page=64K:window=16:contiguous=4M:budget,\
     aperture:16M:scanout";

/// A discrete GPU: the profile without parameters.
const DISC: Profile = Profile {
    name: "DISC",
    segments: DISCRETE_SEGMENTS,
    nodes: "render:virtual,paging,render:physical,companion",
    levels: 2,
    update_mode: 0,
    tables: 1,
    saves_context: true,
    companion: Some(3),
    scratch: 32 << 20,
};

/// All profiles.
const PROFILES: [Profile; 6] = [
    DISC,
    Profile {
        name: "DISC-NSR",
        saves_context: false,
        ..DISC
    },
    Profile {
        name: "DISC-4L",
        levels: 4,
        ..DISC
    },
    Profile {
        name: "INT",
        segments: "aperture:32M:scanout",
        nodes: "render:virtual",
        levels: 4,
        update_mode: 2,
        tables: 0,
        saves_context: true,
        companion: None,
        scratch: 0,
    },
    Profile {
        name: "PHYS",
        nodes: "render:physical,paging,render:physical",
        levels: 0,
        tables: 0,
        saves_context: false,
        companion: None,
        scratch: 0,
        ..DISC
    },
    Profile {
        name: "DISC-96",
        segments: "memory:96M:page=4K:visible:contiguous=96M:scanout:budget,\
             memory:16M:page=64K:window=16:contiguous=4M:budget,\
             aperture:16M:scanout",
        scratch: 256 << 20,
        ..DISC
    },
];

impl Profile {
    /// Returns the profile of that name; without a name it is the first one.
    pub(super) fn named(name: Option<&str>) -> Option<&'static Self> {
        let mut profiles = PROFILES.iter();
        match name {
            Some(name) => profiles.find(|profile| profile.name == name),
            None => profiles.next(),
        }
    }
}
