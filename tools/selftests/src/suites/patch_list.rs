// SPDX-License-Identifier: GPL-2.0

//! The patch list of a submission: one refusal for each rule.

use crate::{
    abi::{
        self,
        engine,
        SubmitPatch, //
    },
    commands::Commands,
    submitter::{
        bind_only,
        Submitter, //
    },
    suite::Suite, //
};

/// The suite.
pub const SUITE: Suite = Suite {
    name: "patch_list",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "[DMA-7] [B6]" index_outside_the_list_is_refused,
        "[DMA-8] [B6]" slot_at_the_limit_is_refused,
        "[DMA-13]" split_offsets_that_fall_are_refused,
        "[DMA-13]" equal_split_offsets_are_accepted,
        "[DMA-13]" split_offset_beyond_the_buffer_is_refused,
        "[DMA-13]" split_offset_inside_a_packet_is_refused,
        "[DMA-13]" entry_that_does_not_patch_may_stand_at_the_end,
        "[DMA-24]" patch_before_its_split_offset_is_refused,
        "[DMA-24] [B1]" patch_offset_out_of_the_buffer_is_refused,
        "[DMA-24]" patch_that_hits_no_operand_is_refused,
        "[DMA-24]" second_patch_of_an_operand_is_refused,
        "[DMA-24]" operand_without_patch_is_refused,
        "[DMA-24] [B8]" reach_beyond_the_allocation_is_refused,
        "[DMA-24]" misaligned_offset_is_refused,
        "[DMA-24]" allocation_that_is_not_bound_is_refused,
        "[DMA-24]" unbound_slot_is_refused,
        "[DMA-24]" fields_of_an_entry_that_does_not_patch_are_zero,
        "" patch_kinds_of_later_stages_are_not_supported,
    },
};

fn index_outside_the_list_is_refused() {
    let setup = Submitter::new();
    for index in [1, 2, 127, 128, 0xffff, 0xffff_fffe] {
        let mut commands = setup.two_stores();
        commands.patches[1].alloc_index = index;
        let kind = abi::SUBMIT_ERROR_ALLOC_INDEX;
        setup.assert_refused(&commands, libc::EINVAL, kind, Some(1));
    }
}

fn slot_at_the_limit_is_refused() {
    let setup = Submitter::new();
    let mut commands = setup.two_stores();
    commands.patches[1].slot = 7;
    setup.assert_accepted(&commands);
    for slot in [8, 9, 255, 256, u32::MAX] {
        commands.patches[1].slot = slot;
        setup.assert_refused(
            &commands,
            libc::EINVAL,
            abi::SUBMIT_ERROR_SLOT_RANGE,
            Some(1),
        );
    }
}

/// Three stores, each padded to 256 bytes, so that they start at 0, 256 and 512.
fn three_stores(setup: &Submitter) -> Commands {
    let mut commands = Commands::new();
    for number in 0..3 {
        commands.store(setup.allocation.at(number * 8), number + 1);
        commands.nop(64 - engine::STORE_DWORDS);
    }
    commands
}

fn split_offsets_that_fall_are_refused() {
    let setup = Submitter::new();
    let mut commands = three_stores(&setup);
    commands.patches[0].split_offset = 0;
    // The second entry patches the last packet, the third the middle one.
    commands.patches.swap(1, 2);
    let kind = abi::SUBMIT_ERROR_SPLIT_ORDER;
    setup.assert_refused(&commands, libc::EINVAL, kind, Some(2));
}

fn equal_split_offsets_are_accepted() {
    let setup = Submitter::new();
    let mut commands = three_stores(&setup);
    commands.patches[2].split_offset = commands.patches[1].split_offset;
    setup.assert_accepted(&commands);
    commands.patches[1].split_offset = 0;
    commands.patches[2].split_offset = 0;
    setup.assert_accepted(&commands);
    assert_eq!(setup.mapping.read64(16), 3);
}

fn split_offset_beyond_the_buffer_is_refused() {
    let setup = Submitter::new();
    for more in [4, 8, 0x1000] {
        let mut commands = setup.two_stores();
        let end = commands.bytes();
        commands.patches.push(bind_only(1, end + more));
        let kind = abi::SUBMIT_ERROR_SPLIT_BOUNDARY;
        setup.assert_refused(&commands, libc::EINVAL, kind, Some(2));
    }
}

fn split_offset_inside_a_packet_is_refused() {
    let setup = Submitter::new();
    for inside in [4, 8, 20] {
        let mut commands = setup.two_stores();
        commands.patches.insert(1, bind_only(1, inside));
        let kind = abi::SUBMIT_ERROR_SPLIT_BOUNDARY;
        setup.assert_refused(&commands, libc::EINVAL, kind, Some(1));
    }
}

fn entry_that_does_not_patch_may_stand_at_the_end() {
    let setup = Submitter::new();
    let mut commands = setup.two_stores();
    commands.patches.push(bind_only(1, commands.bytes()));
    setup.assert_accepted(&commands);
}

fn patch_before_its_split_offset_is_refused() {
    let setup = Submitter::new();
    let mut commands = three_stores(&setup);
    commands.patches[1].split_offset = 512;
    commands.patches[2].split_offset = 512;
    let kind = abi::SUBMIT_ERROR_SPLIT_ORDER;
    setup.assert_refused(&commands, libc::EINVAL, kind, Some(1));
}

fn patch_offset_out_of_the_buffer_is_refused() {
    let setup = Submitter::new();
    let end = setup.two_stores().bytes();
    for offset in [end, end + 8, 4, 12, 0xffff_fff8, 0xffff_fffc, 0xffff_ffff] {
        let mut commands = setup.two_stores();
        commands.patches[1].patch_offset = offset;
        commands.patches[1].split_offset = 0;
        let kind = abi::SUBMIT_ERROR_PATCH_RANGE;
        setup.assert_refused(&commands, libc::EINVAL, kind, Some(1));
    }
}

fn patch_that_hits_no_operand_is_refused() {
    let setup = Submitter::new();
    let mut commands = setup.two_stores();
    // The value of the second store.
    let extra = SubmitPatch {
        patch_offset: 24 + 16,
        ..commands.patches[1]
    };
    commands.patches.push(extra);
    let kind = abi::SUBMIT_ERROR_PATCH_NOT_OPERAND;
    setup.assert_refused(&commands, libc::EINVAL, kind, Some(2));
    commands.patches[2].patch_offset = 24;
    setup.assert_refused(&commands, libc::EINVAL, kind, Some(2));
}

fn second_patch_of_an_operand_is_refused() {
    let setup = Submitter::new();
    let mut commands = setup.two_stores();
    commands.patches.push(commands.patches[1]);
    let kind = abi::SUBMIT_ERROR_PATCH_NOT_OPERAND;
    setup.assert_refused(&commands, libc::EINVAL, kind, Some(2));
}

fn operand_without_patch_is_refused() {
    let setup = Submitter::new();
    let mut commands = setup.two_stores();
    commands.patches.pop();
    let kind = abi::SUBMIT_ERROR_UNPATCHED_OPERAND;
    setup.assert_refused(&commands, libc::EINVAL, kind, Some(24 + 8));
}

fn reach_beyond_the_allocation_is_refused() {
    let setup = Submitter::new();
    let kind = abi::SUBMIT_ERROR_ALLOC_RANGE;
    for offset in [4096, 4096 + 8, 1 << 32, u64::MAX - 7] {
        let mut commands = setup.two_stores();
        commands.patches[1].alloc_offset = offset;
        setup.assert_refused(&commands, libc::EINVAL, kind, Some(1));
    }
    // Rectangles: one row too many, one dword too wide, a pitch that leads outside.
    for (pitch, width, height) in [
        (64, 64, 65),
        (64, 68, 64),
        (4096, 64, 2),
        (0xffff_fffc, 4, 2),
        (4, 4, u32::MAX),
    ] {
        let mut commands = Commands::new();
        let to = crate::commands::Side {
            at: setup.allocation.at(0),
            pitch: pitch.max(width),
        };
        commands.fill(to, crate::commands::Extent { width, height }, 1);
        setup.assert_refused(&commands, libc::EINVAL, kind, Some(0));
    }
    let mut commands = Commands::new();
    commands.fill_bytes(setup.allocation.at(0), 4088, 0);
    commands.store(setup.allocation.at(4088), 0);
    commands.checksum(setup.allocation.at(0), setup.allocation.at(0), 4096);
    setup.assert_accepted(&commands);
    let mut commands = Commands::new();
    commands.checksum(setup.allocation.at(0), setup.allocation.at(4), 4096);
    setup.assert_refused(&commands, libc::EINVAL, kind, Some(1));
}

fn misaligned_offset_is_refused() {
    let setup = Submitter::new();
    let kind = abi::SUBMIT_ERROR_ALLOC_RANGE;
    for offset in [1, 2, 4, 12] {
        let mut commands = setup.two_stores();
        commands.patches[0].alloc_offset = offset;
        setup.assert_refused(&commands, libc::EINVAL, kind, Some(0));
    }
    let mut commands = Commands::new();
    commands.fill_bytes(setup.allocation.at(4), 8, 0);
    setup.assert_accepted(&commands);
    commands.patches[0].alloc_offset = 2;
    setup.assert_refused(&commands, libc::EINVAL, kind, Some(0));
}

fn allocation_that_is_not_bound_is_refused() {
    let setup = Submitter::new();
    let other = setup.another();
    let mut commands = setup.two_stores();
    // Another allocation takes the slot before the second store, whose entry binds nothing new.
    let taken = commands.list(other.handle, crate::commands::Write::No);
    commands.patches[1].split_offset = 0;
    commands.patches.push(SubmitPatch {
        alloc_index: taken,
        ..bind_only(0, 24)
    });
    let kind = abi::SUBMIT_ERROR_NOT_BOUND;
    setup.assert_refused(&commands, libc::EINVAL, kind, Some(1));
    // In another slot it does not matter.
    commands.patches[2].slot = 1;
    setup.assert_accepted(&commands);
}

fn unbound_slot_is_refused() {
    let setup = Submitter::new();
    let mut commands = setup.two_stores();
    commands.patches[1].split_offset = 0;
    let unbind = SubmitPatch {
        alloc_index: abi::ALLOC_INDEX_NONE,
        ..bind_only(0, 24)
    };
    commands.patches.push(unbind);
    let kind = abi::SUBMIT_ERROR_NOT_BOUND;
    setup.assert_refused(&commands, libc::EINVAL, kind, Some(1));
    // Behind the packet it does no harm.
    commands.patches[2].split_offset = 48;
    setup.assert_accepted(&commands);
}

fn fields_of_an_entry_that_does_not_patch_are_zero() {
    let setup = Submitter::new();
    for change in [
        |patch: &mut SubmitPatch| patch.alloc_offset = 8,
        |patch: &mut SubmitPatch| patch.patch_offset = 8,
    ] {
        let mut commands = setup.two_stores();
        let mut entry = bind_only(1, 24);
        change(&mut entry);
        commands.patches.push(entry);
        let refusal = commands.try_submit(&setup.fixture.client, setup.context.handle);
        assert_eq!(
            refusal.expect_err("fields that do not apply").errno,
            libc::EINVAL
        );
    }
}

fn patch_kinds_of_later_stages_are_not_supported() {
    let setup = Submitter::new();
    for kind in [1, 2, 4, 100, u32::MAX] {
        let mut commands = setup.two_stores();
        commands.patches[1].kind = kind;
        let refusal = commands.try_submit(&setup.fixture.client, setup.context.handle);
        let refusal = refusal.expect_err("an unknown kind of patch");
        assert_eq!(refusal.errno, libc::EOPNOTSUPP, "kind {kind}");
    }
}
