// SPDX-License-Identifier: GPL-2.0

//! Primaries: what a picture may be, and where its memory may lie.

use crate::{
    abi::{
        self,
        AllocInfo, //
    },
    client::Allocation,
    commands::Commands,
    debugfs,
    display::{
        physical_picture,
        picture,
        show,
        PICTURE, //
    },
    fixture::{
        physical,
        plain,
        primary,
        Fixture,
        HIDDEN_SEGMENT,
        KIB,
        MIB,
        SYSTEM,
        VISIBLE_SEGMENT, //
    },
    module::Loaded,
    suite::{
        Suite,
        TABLES_OUTSIDE, //
    },
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "primary",
    parameters: Some(TABLES_OUTSIDE),
    cases: crate::cases! {
        "" picture_without_pixels_is_refused,
        "" picture_without_format_is_refused,
        "" unknown_format_is_not_supported,
        "" pitch_below_a_line_is_refused,
        "" pitch_that_is_not_aligned_is_refused,
        "" allocation_one_byte_too_small_is_refused,
        "" picture_whose_size_wraps_is_refused,
        "" exact_fit_is_accepted,
        "" pitch_is_chosen_and_told,
        "" picture_of_something_else_is_refused,
        "" segments_that_nothing_can_show_are_left_out,
        "" preference_among_the_asked_segments_is_accepted,
        "" size_that_no_run_holds_is_refused,
        "[SEG-21]" primary_is_one_run_in_a_memory_segment,
        "[SEG-21]" primary_is_one_run_between_the_pages_of_others,
        "[SEG-21]" physical_reference_is_refused_displayed_or_not,
        "[SEG-24]" only_a_flagged_primary_is_mapped_when_resident,
        "[SEG-24]" flagged_primary_is_written_physically,
    },
};

/// Loads the module by itself: the profile has no segment that a source can read.
pub const BLIND_SUITE: Suite = Suite {
    name: "primary_blind",
    parameters: None,
    cases: crate::cases! {
        "" primary_without_a_segment_for_it_is_refused,
        "" cpu_visible_primary_is_where_the_cpu_reaches_it,
    },
};

/// The errno of a creation that is refused, or 0.
fn refused(info: AllocInfo) -> i32 {
    let fixture = Fixture::new();
    let created = fixture.client.try_create(fixture.device, info);
    created.err().unwrap_or(0)
}

fn changed(change: impl FnOnce(&mut AllocInfo)) -> AllocInfo {
    let mut info = picture(64 * KIB, 0);
    change(&mut info);
    info
}

fn picture_without_pixels_is_refused() {
    assert_eq!(refused(changed(|info| info.width = 0)), libc::EINVAL);
    assert_eq!(refused(changed(|info| info.height = 0)), libc::EINVAL);
}

fn picture_without_format_is_refused() {
    assert_eq!(refused(changed(|info| info.format = 0)), libc::EINVAL);
}

fn unknown_format_is_not_supported() {
    for code in [1, u32::from_le_bytes(*b"NV12"), u32::MAX] {
        let info = changed(|info| info.format = code);
        assert_eq!(refused(info), libc::EOPNOTSUPP, "format {code:#x}");
    }
}

fn pitch_below_a_line_is_refused() {
    // A line has 2 KiB.
    for pitch in [64, 1024, 2048 - 64] {
        let info = changed(|info| info.pitch = pitch);
        assert_eq!(refused(info), libc::EINVAL, "pitch {pitch}");
    }
}

fn pitch_that_is_not_aligned_is_refused() {
    for pitch in [2049, 2052, 2048 + 32, u32::MAX] {
        let info = changed(|info| {
            info.height = 1;
            info.pitch = pitch;
        });
        assert_eq!(refused(info), libc::EINVAL, "pitch {pitch}");
    }
}

fn allocation_one_byte_too_small_is_refused() {
    let info = changed(|info| info.size -= 1);
    assert_eq!(refused(info), libc::EINVAL);
}

fn picture_whose_size_wraps_is_refused() {
    let wrapping = [
        (1 << 30, 1, 0),
        (u32::MAX, 1, 0),
        (16, 1 << 26, 64),
        (16, u32::MAX, 64),
        (1 << 20, 1 << 20, 1 << 22),
    ];
    for (width, height, pitch) in wrapping {
        let info = changed(|info| {
            info.width = width;
            info.height = height;
            info.pitch = pitch;
        });
        assert_eq!(refused(info), libc::EINVAL, "{width}x{height}, {pitch}");
    }
}

fn exact_fit_is_accepted() {
    let fits = [(1, 1, 64), (17, 3, 384), (512, 32, 65536), (1, 5, 320)];
    for (width, height, size) in fits {
        let info = AllocInfo {
            size,
            ..primary(width, height)
        };
        assert_eq!(refused(info), 0, "{width}x{height} in {size}");
        let short = AllocInfo {
            size: size - 1,
            ..info
        };
        assert_eq!(refused(short), libc::EINVAL, "{width}x{height} in less");
    }
}

fn pitch_is_chosen_and_told() {
    let fixture = Fixture::new();
    let align = fixture.client.source(0).pitch_align;
    assert!(align.is_power_of_two());
    let mut infos = [
        AllocInfo {
            size: 4096,
            ..primary(1, 1)
        },
        AllocInfo {
            size: 4096,
            pitch: 3 * align,
            ..primary(1, 1)
        },
        plain(4096, SYSTEM),
    ];
    fixture
        .client
        .try_create_all(fixture.device, &mut infos)
        .expect("ALLOC_CREATE");
    assert_eq!(infos.map(|info| info.pitch), [align, 3 * align, 0]);
}

fn picture_of_something_else_is_refused() {
    let fields: [fn(&mut AllocInfo); 4] = [
        |info| info.width = 1,
        |info| info.height = 1,
        |info| info.pitch = 64,
        |info| info.format = u32::from_le_bytes(*b"XR24"),
    ];
    for (number, set) in fields.iter().enumerate() {
        let mut info = plain(4096, SYSTEM);
        set(&mut info);
        assert_eq!(refused(info), libc::EINVAL, "field {number}");
    }
}

fn segments_that_nothing_can_show_are_left_out() {
    assert_eq!(refused(picture(64 * KIB, HIDDEN_SEGMENT)), libc::ENOSPC);
    let fixture = Fixture::new();
    let mut info = picture(64 * KIB, HIDDEN_SEGMENT | VISIBLE_SEGMENT);
    info.preferred = 2;
    let allocation = fixture.create_resident(info);
    assert_eq!(debugfs::placement(allocation.object_id).segment, 1);
    // Rounded to the pages of the segments that are left.
    let small = fixture.create(AllocInfo {
        size: 64,
        ..primary(1, 1)
    });
    assert_eq!(small.size, 4096);
}

fn preference_among_the_asked_segments_is_accepted() {
    let mut info = picture(64 * KIB, VISIBLE_SEGMENT);
    info.preferred = 2;
    assert_eq!(refused(info), libc::EINVAL);
    info.read_segments = VISIBLE_SEGMENT | HIDDEN_SEGMENT;
    assert_eq!(refused(info), 0);
}

fn size_that_no_run_holds_is_refused() {
    assert_eq!(refused(picture(16 * MIB, SYSTEM)), 0);
    for mask in [SYSTEM, VISIBLE_SEGMENT, 0] {
        let info = picture(16 * MIB + 2 * KIB, mask);
        assert_eq!(refused(info), libc::ENOSPC, "set {mask:#x}");
    }
    // What is no primary needs no run.
    assert_eq!(refused(plain(16 * MIB + 4096, SYSTEM)), 0);
}

fn assert_one_run(allocation: &Allocation) {
    let placement = debugfs::placement(allocation.object_id);
    assert_eq!(placement.segment, 1);
    let text = &placement.record.text;
    assert_eq!(
        (placement.runs.len(), placement.frames.len()),
        (1, 1),
        "{text}"
    );
}

fn primary_is_one_run_in_a_memory_segment() {
    let fixture = Fixture::new();
    for size in [4 * KIB, 4 * MIB] {
        let allocation = fixture.create_resident(picture(size, VISIBLE_SEGMENT));
        assert_one_run(&allocation);
    }
}

fn primary_is_one_run_between_the_pages_of_others() {
    let fixture = Fixture::new();
    let others: Vec<_> = (0..8)
        .map(|_| fixture.create_resident(plain(2 * MIB, VISIBLE_SEGMENT)))
        .collect();
    // Every second one leaves: half is free, and no two parts of it are neighbours.
    for other in others.iter().step_by(2) {
        fixture.push_out(other);
    }
    let remaining: Vec<_> = others.iter().skip(1).step_by(2).collect();
    let handles: Vec<_> = remaining.iter().map(|other| other.handle).collect();
    fixture
        .client
        .try_evict(fixture.device, &handles, abi::EVICT_ONLY_IF_NEEDED)
        .expect("EVICT");
    let loose = fixture.create_resident(plain(2 * MIB, VISIBLE_SEGMENT));
    let allocation = fixture.create_resident(picture(4 * MIB, VISIBLE_SEGMENT));
    assert_one_run(&allocation);
    assert_eq!(debugfs::placement(loose.object_id).segment, 1);
}

/// Asserts that a list with `allocation` in it is refused as a whole.
fn assert_no_physical_access(fixture: &Fixture, allocation: &Allocation) {
    let context = fixture.context();
    let good = fixture.create(physical(4096, VISIBLE_SEGMENT));
    let mut commands = Commands::new();
    commands.store(good.at(0), 1).store(allocation.at(0), 1);
    let refusal = commands
        .try_submit(&fixture.client, context.handle)
        .expect_err("SUBMIT_PATCHED succeeded");
    assert_eq!(
        (refusal.errno, refusal.kind, refusal.index),
        (libc::EACCES, abi::SUBMIT_ERROR_ACCESS, 1)
    );
    let mut commands = Commands::new();
    commands.store(good.at(0), 1);
    fixture.run(&context, &commands);
}

fn physical_reference_is_refused_displayed_or_not() {
    let fixture = Fixture::new();
    for mask in [VISIBLE_SEGMENT, SYSTEM] {
        let allocation = fixture.create_resident(picture(PICTURE, mask));
        assert_no_physical_access(&fixture, &allocation);
        fixture.show(0, allocation.handle);
        assert_no_physical_access(&fixture, &allocation);
        fixture.blank(0);
        assert_no_physical_access(&fixture, &allocation);
    }
}

fn only_a_flagged_primary_is_mapped_when_resident() {
    let fixture = Fixture::new();
    let flagged = fixture.create(physical_picture(PICTURE, SYSTEM));
    let other = fixture.create(picture(PICTURE, SYSTEM));
    fixture
        .client
        .bring_in(&fixture.queue, &[flagged.handle, other.handle]);
    let range = debugfs::placement(flagged.object_id).aperture;
    assert_eq!(range.map(|range| range.length), Some(PICTURE));
    assert!(debugfs::placement(other.object_id).aperture.is_none());
    assert_eq!(debugfs::segment(3).mapped, PICTURE);

    fixture.show(0, flagged.handle);
    assert_eq!(debugfs::segment(3).mapped, PICTURE);
    assert_eq!(debugfs::placement(flagged.object_id).aperture, range);
    fixture.show(1, other.handle);
    assert_eq!(debugfs::segment(3).mapped, 2 * PICTURE);
    fixture.blank(0);
    fixture.blank(1);
    assert_eq!(debugfs::segment(3).mapped, PICTURE);
    assert_eq!(debugfs::placement(flagged.object_id).aperture, range);
}

fn flagged_primary_is_written_physically() {
    let fixture = Fixture::new();
    let context = fixture.context();
    for mask in [VISIBLE_SEGMENT, SYSTEM] {
        let allocation = fixture.create(physical_picture(64 * KIB, mask));
        let mapping = fixture.client.map(&allocation);
        for shown in [false, true] {
            if shown {
                fixture.show(0, allocation.handle);
            }
            let mut commands = Commands::new();
            commands.store(allocation.at(8), 40 + u64::from(shown));
            fixture.run(&context, &commands);
            assert_eq!(mapping.read64(8), 40 + u64::from(shown));
        }
    }
    fixture.client.scanout(show(0, 0));
}

fn primary_without_a_segment_for_it_is_refused() {
    let _loaded = Loaded::new("profile=PHYS segments=memory:4M:visible:contiguous=4M,aperture:4M");
    assert_eq!(refused(picture(64 * KIB, 0)), libc::ENOSPC);
}

fn cpu_visible_primary_is_where_the_cpu_reaches_it() {
    let _loaded =
        Loaded::new("profile=PHYS segments=memory:4M:contiguous=4M:scanout,aperture:4M:scanout");
    assert_eq!(refused(picture(64 * KIB, 1 << 1)), libc::ENOSPC);
    let fixture = Fixture::new();
    let both = fixture.create_resident(picture(64 * KIB, 0));
    assert_eq!(debugfs::placement(both.object_id).segment, 0);
    let unseen = fixture.create_resident(AllocInfo {
        flags: abi::ALLOC_PRIMARY,
        ..picture(64 * KIB, 1 << 1)
    });
    fixture.show(0, unseen.handle);
    assert_eq!(debugfs::placement(unseen.object_id).segment, 1);
}
