// SPDX-License-Identifier: GPL-2.0

//! The software engine passes the conformance suite, and its parser refuses what it must.

use super::Engine;
use crate::backend::{
    conformance,
    Backend, //
};

/// Makes a fresh engine, lets it be checked, and ends it.
fn check(with: fn(&dyn Backend) -> conformance::Verdict) -> conformance::Verdict {
    let engine = Engine::new(&conformance::shape())?;
    let verdict = with(&*engine);
    engine.shut_down();
    verdict
}

/// Declares a test for each check of the conformance suite.
macro_rules! conformance_suite {
    ($($check:ident,)+) => {
        #[kernel::macros::kunit_tests(vidmm_backend_software)]
        mod suite {
            use super::*;

            $(
                #[test]
                fn $check() {
                    assert_eq!(check(conformance::$check), Ok(true));
                }
            )+
        }
    };
}

conformance_suite! {
    capabilities_match_shape,
    fill_writes_runs_only,
    transfer_moves_content,
    full_buffers_are_continued,
    discard_spares_neighbours,
    aperture_shows_pages,
    ignored_operation_has_no_effect,
    rectangles_match_model,
    values_are_right,
    portions_match_whole,
    node_keeps_order,
    nodes_run_at_once,
    stop_ends_work,
    outside_is_an_error,
    lost_completion_needs_stop,
    shut_down_gives_back_all,
}
