// SPDX-License-Identifier: GPL-2.0

//! The suites, one file per concept.

pub mod abi;
pub mod abi_c;
pub mod address_model;
pub mod address_space;
pub mod address_updates;
pub mod allocation;
pub mod allocation_list;
pub mod aperture;
pub mod budget;
pub mod clean;
pub mod command_buffer;
pub mod content;
pub mod context;
pub mod contiguous;
pub mod cpu_access;
pub mod cut_results;
pub mod engine;
pub mod events;
pub mod eviction;
pub mod fairness;
pub mod fault_injection;
pub mod faults_commands;
pub mod faults_copying;
pub mod faults_fences;
pub mod faults_handles;
pub mod faults_mappings;
pub mod faults_pressure;
pub mod fence;
pub mod fields;
pub mod fuzz;
pub mod handle;
pub mod host_aperture;
pub mod host_aperture_shortage;
pub mod host_memory;
pub mod library;
pub mod lifetime;
pub mod lists;
pub mod lock;
pub mod make_resident;
pub mod mapping;
pub mod moves;
pub mod node;
pub mod node_sharing;
pub mod offer;
pub mod oversubscription;
pub mod paging;
pub mod paging_buffer;
pub mod paging_queue;
pub mod paging_space;
pub mod paging_virtual;
pub mod patch_list;
pub mod pinned;
pub mod placement_matrix;
pub mod primary;
pub mod priority;
pub mod query;
pub mod queue_life;
pub mod random_model;
pub mod reclaim;
pub mod recovery;
pub mod registration;
pub mod relocation;
pub mod residency;
pub mod residency_list;
pub mod scanout;
pub mod scanout_calls;
pub mod scanout_order;
pub mod segment;
pub mod slots;
pub mod soak;
pub mod splitting;
pub mod statistics;
pub mod stress;
pub mod submission;
pub mod swap;
pub mod synchronisation;
pub mod trace_format;
pub mod translation;
pub mod virtual_submission;

use crate::suite::Suite;

/// All suites, in the order in which they run.
pub const ALL: &[&Suite] = &[
    &registration::SUITE,
    &query::SUITE,
    &abi::SUITE,
    &fields::SUITE,
    &lists::SUITE,
    &abi_c::SUITE,
    &library::SUITE,
    &handle::SUITE,
    &allocation::SUITE,
    &segment::SUITE,
    &aperture::SUITE,
    &mapping::SUITE,
    &cpu_access::SUITE,
    &host_aperture::SUITE,
    &host_aperture_shortage::SUITE,
    &lock::SUITE,
    &fence::SUITE,
    &residency::SUITE,
    &residency_list::SUITE,
    &host_memory::SUITE,
    &pinned::SUITE,
    &pinned::REACH_SUITE,
    &primary::SUITE,
    &primary::BLIND_SUITE,
    &scanout::SUITE,
    &scanout_calls::SUITE,
    &scanout_calls::LOAD_SUITE,
    &scanout_order::SUITE,
    &swap::SUITE,
    &contiguous::SUITE,
    &clean::SUITE,
    &priority::SUITE,
    &offer::SUITE,
    &reclaim::SUITE,
    &paging_queue::SUITE,
    &paging::SUITE,
    &paging_buffer::SUITE,
    &paging_virtual::SUITE,
    &paging_virtual::PLACE_SUITE,
    &paging_virtual::SMALL_SUITE,
    &paging_virtual::BUFFER_SUITE,
    &paging_space::SUITE,
    &events::SUITE,
    &moves::SUITE,
    &moves::LIMIT_SUITE,
    &budget::SUITE,
    &make_resident::SUITE,
    &queue_life::SUITE,
    &relocation::SUITE,
    &eviction::SUITE,
    &context::SUITE,
    &command_buffer::SUITE,
    &allocation_list::SUITE,
    &patch_list::SUITE,
    &submission::SUITE,
    &virtual_submission::SUITE,
    &translation::SUITE,
    &address_space::SUITE,
    &address_space::FOUR_SUITE,
    &address_space::PHYSICAL_SUITE,
    &address_updates::SUITE,
    &address_updates::FOUR_SUITE,
    &address_model::SUITE,
    &address_model::FOUR_SUITE,
    &translation::SHAPES_SUITE,
    &splitting::SUITE,
    &slots::SUITE,
    &cut_results::SUITE,
    &node_sharing::SUITE,
    &recovery::SUITE,
    &synchronisation::SUITE,
    &engine::SUITE,
    &node::SUITE,
    &trace_format::SUITE,
    &statistics::SUITE,
    &content::SUITE,
    &lifetime::SUITE,
    &fairness::SUITE,
    &placement_matrix::SUITE,
    &random_model::SUITE,
    &stress::SUITE,
    &faults_commands::SUITE,
    &faults_copying::SUITE,
    &faults_handles::SUITE,
    &faults_mappings::SUITE,
    &faults_pressure::SUITE,
    &faults_fences::SUITE,
    &fuzz::SUITE,
    &fault_injection::SUITE,
    &aperture::LIMIT_SUITE,
    &host_aperture_shortage::SMALL_SUITE,
    &host_aperture::UNREACHABLE_SUITE,
    &relocation::LARGE_SUITE,
    &paging::PHYSICAL_SUITE,
    &paging::PLACES_SUITE,
    &engine::PHYSICAL_SUITE,
    &node::PHYSICAL_SUITE,
    &splitting::PHYSICAL_SUITE,
    &slots::PHYSICAL_SUITE,
    &cut_results::PHYSICAL_SUITE,
    &node_sharing::PHYSICAL_SUITE,
    &splitting::BACK_TO_BACK_SUITE,
    &slots::BACK_TO_BACK_SUITE,
    &cut_results::BACK_TO_BACK_SUITE,
    &node_sharing::BACK_TO_BACK_SUITE,
];

/// Suites that run only when they are asked for.
pub const LONG: &[&Suite] = &[&soak::SUITE];
