// SPDX-License-Identifier: GPL-2.0

//! The software engine passes the conformance suite, and keeps the rules that are its own.

use super::Engine;
use crate::{
    abstractions::params::Parameters,
    backend::{
        conformance,
        Backend, //
    }, //
};

/// Makes a fresh engine of some shape, lets it be checked, and ends it.
fn check(
    shape: Parameters,
    with: fn(&dyn Backend) -> conformance::Verdict,
) -> conformance::Verdict {
    let engine = Engine::new(&shape)?;
    let verdict = with(&*engine);
    engine.shut_down();
    verdict
}

/// The shape without save and restore of contexts.
fn forgetful() -> Parameters {
    Parameters {
        save_restore: Some(false),
        ..conformance::shape()
    }
}

/// The shape with random delays.
fn delayed() -> Parameters {
    Parameters {
        seed: Some(42),
        delay_us: Some(50),
        ..conformance::shape()
    }
}

/// The shape with virtual addresses and page tables of four levels.
fn deep() -> Parameters {
    Parameters {
        levels: Some(4),
        ..conformance::virtual_shape()
    }
}

/// The shape with virtual addresses, in which hardly anything is remembered.
fn short_of_memory() -> Parameters {
    Parameters {
        tlb_entries: Some(3),
        ..conformance::virtual_shape()
    }
}

/// The shape with virtual addresses, in which invalid translations are not remembered.
fn without_invalid() -> Parameters {
    Parameters {
        tlb_holds_invalid: Some(false),
        ..conformance::virtual_shape()
    }
}

/// The shape without memory segments and without a paging node.
fn integrated() -> Parameters {
    Parameters {
        profile: Some(c"INT"),
        ..Parameters::default()
    }
}

/// Declares a test for each check of the conformance suite.
macro_rules! conformance_suite {
    (by place { $($check:ident,)+ } by address { $($by_address:ident,)+ }) => {
        #[kernel::macros::kunit_tests(vidmm_backend_software)]
        mod suite {
            use super::*;

            $(
                #[test]
                fn $check() {
                    assert_eq!(check(conformance::shape(), conformance::$check), Ok(true));
                }
            )+

            $(
                #[test]
                fn $by_address() {
                    let with = conformance::$by_address;
                    assert_eq!(check(conformance::virtual_shape(), with), Ok(true));
                    assert_eq!(check(deep(), with), Ok(true));
                }
            )+

            #[test]
            fn remembering_little_changes_no_result() {
                let with = conformance::mappings_match_model;
                assert_eq!(check(short_of_memory(), with), Ok(true));
                let with = conformance::virtual_operations_move_content;
                assert_eq!(check(short_of_memory(), with), Ok(true));
            }

            #[test]
            fn invalid_translations_need_no_flush_where_none_is_held() {
                let with = conformance::invalid_translations_do_not_last;
                assert_eq!(check(without_invalid(), with), Ok(true));
                let with = conformance::mappings_match_model;
                assert_eq!(check(without_invalid(), with), Ok(true));
            }

            #[test]
            fn registers_are_lost_without_save_and_restore() {
                assert_eq!(check(forgetful(), conformance::registers_are_lost), Ok(true));
            }

            #[test]
            fn delays_change_no_result() {
                assert_eq!(check(delayed(), conformance::values_are_right), Ok(true));
                assert_eq!(check(delayed(), conformance::node_keeps_order), Ok(true));
            }

            #[test]
            fn operations_are_executed_at_once_without_paging_node() {
                let verdict = check(integrated(), conformance::system_memory_is_reached);
                assert_eq!(verdict, Ok(true));
            }
        }
    };
}

conformance_suite! {
    by place {
        capabilities_match_shape,
        fill_writes_runs_only,
        transfer_moves_content,
        full_buffers_are_continued,
        discard_spares_neighbours,
        aperture_shows_pages,
        window_shows_pages,
        ignored_operation_has_no_effect,
        rectangles_match_model,
        values_are_right,
        portions_match_whole,
        node_keeps_order,
        nodes_run_at_once,
        stop_ends_work,
        outside_is_an_error,
        grants_are_kept,
        system_memory_is_reached,
        lost_completion_needs_stop,
        shut_down_gives_back_all,
    }
    by address {
        page_states_are_kept,
        commands_are_fetched,
        translations_last_until_flush,
        lookups_are_counted,
        flush_reaches_busy_nodes,
        large_pages_translate,
        virtual_operations_move_content,
        wrong_space_is_an_error,
        mappings_match_model,
    }
}
