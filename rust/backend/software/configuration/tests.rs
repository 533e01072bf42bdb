// SPDX-License-Identifier: GPL-2.0

//! Profiles register, and every broken rule is refused.

use kernel::prelude::*;

use super::Configuration;
use crate::{
    abstractions::params::Parameters,
    backend::capabilities::Capabilities, //
};

/// Returns what a profile says about itself.
fn profile(name: &'static CStr) -> Result<Capabilities> {
    shape(Parameters {
        profile: Some(name),
        ..Parameters::default()
    })
}

/// Returns what parameters lead to.
fn shape(parameters: Parameters) -> Result<Capabilities> {
    Configuration::new(&parameters).map(|configuration| configuration.capabilities)
}

/// Returns whether parameters break a rule.
fn refused(parameters: Parameters) -> bool {
    shape(parameters).err() == Some(EINVAL)
}

/// Returns whether a list of segments breaks a rule.
fn refused_segments(segments: &'static CStr) -> bool {
    refused(Parameters {
        segments: Some(segments),
        ..Parameters::default()
    })
}

/// Returns whether a list of segments is taken.
fn taken_segments(segments: &'static CStr) -> bool {
    shape(Parameters {
        segments: Some(segments),
        ..Parameters::default()
    })
    .is_ok()
}

/// Returns whether a list of nodes breaks a rule.
fn refused_nodes(nodes: &'static CStr) -> bool {
    refused(Parameters {
        nodes: Some(nodes),
        ..Parameters::default()
    })
}

#[kernel::macros::kunit_tests(vidmm_backend_configuration)]
mod suite {
    use super::*;
    use crate::units::NodeOrdinal;

    #[test]
    fn all_profiles_register() {
        for name in [
            c"DISC",
            c"DISC-NSR",
            c"DISC-4L",
            c"INT",
            c"PHYS",
            c"DISC-96",
        ] {
            assert!(profile(name).is_ok());
        }
        assert!(refused(Parameters {
            profile: Some(c"disc"),
            ..Parameters::default()
        }));
    }

    #[test]
    fn default_is_disc() -> Result {
        let disc = shape(Parameters::default())?;
        assert_eq!(disc.segments.len(), 3);
        let [first, second, third] = disc.segments.as_slice() else {
            return Err(EINVAL);
        };
        assert_eq!((first.bytes, first.page_bytes), (16 << 20, 4096));
        assert_eq!(first.flags.bits(), 1 | 1 << 4 | 1 << 5);
        assert_eq!((first.cpu_window, first.contiguous), (16 << 20, 16 << 20));
        assert_eq!((second.bytes, second.page_bytes), (16 << 20, 65536));
        assert_eq!(second.flags.bits(), 1 << 1 | 1 << 5);
        assert_eq!((second.cpu_window, second.contiguous), (1 << 20, 4 << 20));
        assert_eq!(third.flags.bits(), 1 << 4);
        assert_eq!(third.cpu_window, 0);

        let modes = [4, 0, 3, 0];
        for (node, modes) in disc.nodes.iter().zip(modes) {
            assert_eq!(node.modes.bits(), modes);
        }
        assert_eq!(disc.nodes.len(), 4);
        assert_eq!(disc.nodes[0].flags.bits(), 1 | 1 << 2 | 1 << 3);
        assert_eq!(disc.nodes[2].flags.bits(), 0xf);
        assert_eq!(disc.nodes[0].companion, Some(NodeOrdinal(3)));
        assert_eq!(disc.nodes[2].companion, None);
        assert_eq!(disc.paging_node, Some(NodeOrdinal(1)));
        assert_eq!(disc.paging_buffer_bytes, 65536);
        Ok(())
    }

    #[test]
    fn profiles_differ_where_they_shall() -> Result {
        let plain = profile(c"DISC-NSR")?;
        assert_eq!(plain.nodes[0].flags.bits() & (1 | 1 << 3), 0);
        let deep = profile(c"DISC-4L")?;
        assert_eq!(
            deep.translation.map(|translation| translation.levels),
            Some(4)
        );
        let integrated = profile(c"INT")?;
        assert_eq!(integrated.segments.len(), 1);
        assert_eq!(integrated.paging_node, None);
        let physical = profile(c"PHYS")?;
        assert!(physical.translation.is_none());
        assert_eq!(physical.nodes[0].modes.bits(), 3);
        assert_eq!(physical.nodes[2].modes.bits(), 3);
        assert_eq!(profile(c"DISC-96")?.segments[0].bytes, 96 << 20);
        Ok(())
    }

    #[test]
    fn segments_together_are_checked() {
        assert!(refused_segments(c""));
        assert!(refused_segments(c"memory:1M"));
        assert!(refused_segments(c"aperture:1M,aperture:1M"));
        assert!(refused_segments(c"memory:1M:id=0,aperture:1M"));
        assert!(refused_segments(c"memory:1M:id=2,aperture:1M"));
        assert!(refused_segments(c"memory:1M:id=32,aperture:1M"));
        assert!(refused_segments(c"memory:1M:at=0,aperture:1M:at=512K"));
        assert!(refused_segments(
            c"memory:1M:at=0xfffffffffff00000,aperture:1M"
        ));
        assert!(taken_segments(c"memory:1M:at=0,aperture:1M:at=1M"));
        assert!(taken_segments(c"aperture:1M:id=2,memory:1M:id=1"));
    }

    #[test]
    fn at_most_31_segments() {
        assert!(taken_segments(
            c"memory:1M,aperture:1M,memory:1M,memory:1M,memory:1M,memory:1M,memory:1M,memory:1M,\
              memory:1M,memory:1M,memory:1M,memory:1M,memory:1M,memory:1M,memory:1M,memory:1M,\
              memory:1M,memory:1M,memory:1M,memory:1M,memory:1M,memory:1M,memory:1M,memory:1M,\
              memory:1M,memory:1M,memory:1M,memory:1M,memory:1M,memory:1M,memory:1M"
        ));
        assert!(refused_segments(
            c"memory:1M,aperture:1M,memory:1M,memory:1M,memory:1M,memory:1M,memory:1M,memory:1M,\
              memory:1M,memory:1M,memory:1M,memory:1M,memory:1M,memory:1M,memory:1M,memory:1M,\
              memory:1M,memory:1M,memory:1M,memory:1M,memory:1M,memory:1M,memory:1M,memory:1M,\
              memory:1M,memory:1M,memory:1M,memory:1M,memory:1M,memory:1M,memory:1M,memory:1M"
        ));
    }

    #[test]
    fn one_segment_is_checked() {
        for segments in [
            c"memory:0,aperture:1M",
            c"memory:,aperture:1M",
            c"memory,aperture:1M",
            c"memory:1M:,aperture:1M",
            c"disk:1M,aperture:1M",
            c"memory:1M:page=8K,aperture:1M",
            c"memory:1M:page=64K:page=64K,aperture:1M",
            c"memory:96K:page=64K,aperture:1M",
            c"memory:1000,aperture:1M",
            c"memory:1M:fast,aperture:1M",
            c"memory:1M:fast=1,aperture:1M",
            c"memory:1M:window=,aperture:1M",
            c"memory:1M:window=+4,aperture:1M",
            c"memory:1M:window=0,aperture:1M",
            c"memory:1M:window=3,aperture:1M",
            c"memory:1M:window=256,aperture:1M",
            c"memory:1M:window=4:visible,aperture:1M",
            c"memory:1M:coherent-window,aperture:1M",
            c"memory:1M:coherent,aperture:1M",
            c"memory:1M:contiguous=2M,aperture:1M",
            c"memory:1M:contiguous=1000,aperture:1M",
            c"memory:1M:limit=2M,aperture:1M",
            c"memory:1M:limit=0,aperture:1M",
            c"memory:1M:at=1000,aperture:1M",
            c"memory:99999999999G,aperture:1M",
            c"memory:1M,aperture:1M:page=64K",
            c"memory:1M,aperture:1M:window=4",
            c"memory:1M,aperture:0",
            c"memory:1M,aperture:1M,",
        ] {
            assert!(refused_segments(segments));
        }
        assert!(taken_segments(
            c"memory:1M:page=4K:window=4:coherent-window:contiguous=64K:limit=0x80000,aperture:1M:coherent"
        ));
    }

    #[test]
    fn nodes_are_checked() {
        for nodes in [
            c"",
            c"render",
            c"render,",
            c"render:real,paging",
            c"render:virtual:physical,paging",
            c"paging:virtual",
            c"render,companion:physical,paging",
            c"draw,paging",
            c"render,paging,paging",
        ] {
            assert!(refused_nodes(nodes));
        }
        assert!(!refused_nodes(c"copy:physical,paging,render"));
    }

    #[test]
    fn translation_is_checked() {
        let defaults = Parameters::default();
        assert!(refused(Parameters {
            levels: Some(0),
            ..defaults
        }));
        assert!(refused(Parameters {
            levels: Some(3),
            ..defaults
        }));
        assert!(refused(Parameters {
            update_mode: Some(3),
            ..defaults
        }));
        assert!(refused(Parameters {
            update_mode: Some(2),
            ..defaults
        }));
        assert!(refused(Parameters {
            client_tables: Some(4),
            ..defaults
        }));
        assert!(refused(Parameters {
            client_tables: Some(3),
            ..defaults
        }));
        assert!(refused(Parameters {
            paging_tables: Some(99),
            ..defaults
        }));
        assert!(refused(Parameters {
            scratch: Some(0),
            ..defaults
        }));
        assert!(refused(Parameters {
            tlb_entries: Some(0),
            ..defaults
        }));
        assert!(refused(Parameters {
            reserve_va: Some(1),
            ..defaults
        }));
        assert!(!refused(Parameters {
            client_tables: Some(2),
            ..defaults
        }));
        assert!(!refused(Parameters {
            levels: Some(4),
            update_mode: Some(2),
            client_tables: Some(0),
            paging_tables: Some(0),
            ..defaults
        }));
        assert!(refused(Parameters {
            profile: Some(c"INT"),
            update_mode: Some(0),
            ..defaults
        }));
    }

    #[test]
    fn numbers_are_checked() {
        let defaults = Parameters::default();
        assert!(refused(Parameters {
            slots: Some(0),
            ..defaults
        }));
        assert!(refused(Parameters {
            slots: Some((1 << 24) + 1),
            ..defaults
        }));
        assert!(refused(Parameters {
            timeout_ms: Some(0),
            ..defaults
        }));
        assert!(refused(Parameters {
            paging_buffer: Some(0),
            ..defaults
        }));
        assert!(refused(Parameters {
            paging_buffer: Some(4097),
            ..defaults
        }));
        assert!(refused(Parameters {
            paging_buffer: Some(1 << 40),
            ..defaults
        }));
        assert!(refused(Parameters {
            sources: Some(17),
            ..defaults
        }));
        assert!(!refused(Parameters {
            slots: Some(1 << 24),
            ..defaults
        }));
        assert!(!refused(Parameters {
            paging_buffer: Some(4096),
            ..defaults
        }));
        assert!(!refused(Parameters {
            profile: Some(c"INT"),
            slots: Some(0),
            ..defaults
        }));
    }

    #[test]
    fn companion_follows_list_of_nodes() -> Result {
        let own = shape(Parameters {
            nodes: Some(c"render,paging"),
            ..Parameters::default()
        })?;
        assert_eq!(own.nodes[0].companion, Some(NodeOrdinal(1)));
        let named = shape(Parameters {
            companion: Some(99),
            ..Parameters::default()
        })?;
        assert_eq!(named.nodes[0].companion, Some(NodeOrdinal(99)));
        Ok(())
    }
}
