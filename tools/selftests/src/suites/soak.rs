// SPDX-License-Identifier: GPL-2.0

//! The long run: the tests whose loops go on as long as there is time.
//!
//! They share their code with the short forms in the other suites.

use super::{
    command_buffer::list_rewritten_during_the_call_is_never_trusted, //
    engine::random_buffers_match_the_reference,
    fuzz::{
        changed_arguments_harm_nobody,
        changed_command_buffers_harm_nobody,
        random_mappings_harm_nobody, //
    },
    host_aperture_shortage::pages_come_and_go_under_everybody,
    lifetime::{
        killed_client_leaves_nothing,
        objects_used_by_many_threads_can_be_closed, //
    },
    moves::failing_steps_leak_nothing,
    offer::offers_race_with_everything,
    paging::reused_memory_shows_no_foreign_data,
    paging_queue::work_that_waits_for_the_paging_value_is_right,
    placement_matrix::random_steps_keep_to_the_matrix,
    random_model::{
        work_that_fits_matches_the_model,
        work_under_pressure_matches_the_model,
        work_with_forced_moves_matches_the_model,
        work_with_offers_matches_the_model, //
    },
    relocation::{
        cpu_and_gpu_add_to_one_word_while_it_moves,
        first_touches_meet_the_end_of_the_storage,
        mappings_come_and_go_while_memory_moves,
        old_place_is_not_written_through_old_mappings,
        work_never_sees_memory_that_is_still_on_its_way,
        writers_lose_nothing_while_memory_moves, //
    },
    stress::{
        processes_killed_at_random_leave_nothing,
        processes_under_pressure_keep_their_data, //
    },
};
use crate::suite::Suite;

/// The suite.
pub const SUITE: Suite = Suite {
    name: "soak",
    parameters: Some("profile=DISC"),
    cases: crate::cases! {
        "" processes_killed_at_random_leave_nothing,
        "" processes_under_pressure_keep_their_data,
        "" random_steps_keep_to_the_matrix,
        "" work_that_fits_matches_the_model,
        "" work_under_pressure_matches_the_model,
        "" work_with_forced_moves_matches_the_model,
        "" writers_lose_nothing_while_memory_moves,
        "" work_never_sees_memory_that_is_still_on_its_way,
        "" cpu_and_gpu_add_to_one_word_while_it_moves,
        "" old_place_is_not_written_through_old_mappings,
        "" mappings_come_and_go_while_memory_moves,
        "" first_touches_meet_the_end_of_the_storage,
        "" work_with_offers_matches_the_model,
        "" offers_race_with_everything,
        "" pages_come_and_go_under_everybody,
        "" failing_steps_leak_nothing,
        "" reused_memory_shows_no_foreign_data,
        "" work_that_waits_for_the_paging_value_is_right,
        "" list_rewritten_during_the_call_is_never_trusted,
        "" random_buffers_match_the_reference,
        "" killed_client_leaves_nothing,
        "" objects_used_by_many_threads_can_be_closed,
        "" changed_arguments_harm_nobody,
        "" changed_command_buffers_harm_nobody,
        "" random_mappings_harm_nobody,
    },
};
