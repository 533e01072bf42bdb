// SPDX-License-Identifier: GPL-2.0

//! The picture as the GPU makes it: the steps of a scene, in command buffers with patch lists.
//!
//! Picture and textures are allocations that the engine reaches by physical addresses, so each of them
//! has to be in the segment, in one piece, while a buffer that names it runs. All of them together do
//! not fit: the driver pages. A buffer names the picture and as many textures as take a quarter of
//! what the picture leaves.

use std::collections::{
    BTreeSet,
    VecDeque, //
};
use std::time::Duration;

use indicatif::ProgressBar;
use libvidmm::{
    abi,
    allocation,
    commands::{
        Area,
        Buffer,
        Commands,
        Rectangle as Form, //
    },
    context,
    Access,
    Adapter,
    Allocation,
    Context,
    Deadline,
    Device, //
};
use serde::Serialize;

use super::place::Place;
use super::scene::{
    Scene,
    Step,
    Target, //
};
use super::surface::{
    Rectangle,
    Size,
    Surface, //
};
use crate::failure::{
    while_doing,
    Failure, //
};
use crate::names;

/// Buffers that are handed to the driver before the first of them has finished.
const IN_FLIGHT: usize = 4;

/// How long a buffer may take with everything in front of it.
const PATIENCE: Duration = Duration::from_secs(60);

/// A scene on an adapter.
pub(crate) struct Painter<'a> {
    scene: &'a Scene,
    device: Device,
    context: Context,
    picture: Allocation,
    textures: Vec<Allocation>,
    limits: Limits,
}

/// What one buffer may name and hold.
#[derive(Clone, Copy, Debug)]
struct Limits {
    texture_bytes: u64,
    textures: usize,
    steps: usize,
    slots: u32,
}

/// What the driver reports of the submissions of a picture.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Work {
    pub(crate) submissions: u64,
    /// Pieces into which the driver cut them.
    pub(crate) portions: u64,
    /// Addresses that it wrote into command buffers.
    pub(crate) patches_written: u64,
    /// Bytes that they named, each allocation once per submission.
    pub(crate) named_bytes: u64,
    /// Bytes that had to be brought in for that.
    pub(crate) paged_in_bytes: u64,
    /// Time in which one of them ran.
    pub(crate) running_ns: u64,
}

impl<'a> Painter<'a> {
    /// Makes the allocations of `scene` and a context on the node of `place`.
    pub(crate) fn new(adapter: &Adapter, place: &Place, scene: &'a Scene) -> Result<Self, Failure> {
        let device = adapter.create_device()?;
        let context = context::Builder::new(place.node.ordinal)
            .create(&device)
            .map_err(while_doing("making a context"))?;
        let allocate = |size: Size| {
            allocation::Builder::new(size.bytes())
                .cpu_visible()
                .accessed_physically()
                .segments(1 << place.segment.id)
                .create(&device)
                .map_err(while_doing("making an allocation"))
        };
        let picture = allocate(scene.picture)?;
        let textures = scene.textures.iter().map(|t| allocate(t.size));
        Ok(Self {
            scene,
            textures: textures.collect::<Result<_, _>>()?,
            picture,
            context,
            device,
            limits: Limits::new(adapter, place, scene)?,
        })
    }

    /// Copies the pixels of the textures into their allocations.
    pub(crate) fn upload(
        &self,
        surfaces: &[Surface],
        progress: &ProgressBar,
    ) -> Result<(), Failure> {
        for (texture, surface) in self.textures.iter().zip(surfaces) {
            texture
                .write(0, &surface.to_bytes())
                .map_err(while_doing("writing a texture"))?;
            progress.inc(1);
        }
        Ok(())
    }

    /// Makes the picture, and calls `between` after each buffer with the part that is done.
    pub(crate) fn paint(
        &self,
        progress: &ProgressBar,
        mut between: impl FnMut(f64) -> Result<(), Failure>,
    ) -> Result<Work, Failure> {
        let mut work = Work::default();
        let mut in_flight = VecDeque::new();
        let batches = batches(self.scene, &self.limits);
        let count = batches.len();
        progress.set_length(count as u64);
        for (number, batch) in batches.into_iter().enumerate() {
            // CAST: far below the precision of the type.
            between(number as f64 / count as f64)?;
            let steps = &self.scene.steps[batch];
            work.named_bytes += self.named_bytes(steps);
            let buffer = self.encode(steps);
            let submitted = self.context.submission(buffer).submit();
            let submitted = submitted.map_err(|error| self.explain("a submission", error))?;
            in_flight.push_back(submitted.id);
            if in_flight.len() > IN_FLIGHT {
                self.finish(in_flight.pop_front(), &mut work)?;
                progress.inc(1);
            }
        }
        for id in in_flight {
            self.finish(Some(id), &mut work)?;
            progress.inc(1);
        }
        Ok(work)
    }

    /// Returns how many bytes the buffer of some steps names: the picture and the textures.
    fn named_bytes(&self, steps: &[Step]) -> u64 {
        let textures: BTreeSet<_> = steps.iter().filter_map(Step::texture).collect();
        let bytes = textures
            .into_iter()
            .map(|texture| self.scene.textures[texture].size.bytes());
        self.scene.picture.bytes() + bytes.sum::<u64>()
    }

    /// Waits for a submission and adds what the driver reports of it.
    fn finish(&self, submission: Option<u64>, work: &mut Work) -> Result<(), Failure> {
        let Some(id) = submission else {
            return Ok(());
        };
        self.context
            .wait(id, Deadline::after(PATIENCE))
            .map_err(|error| self.explain("waiting for a submission", error))?;
        let report = self.context.query(id)?;
        work.submissions += 1;
        work.portions += u64::from(report.splits);
        work.patches_written += u64::from(report.patches_written);
        work.paged_in_bytes += report.paged_in;
        work.running_ns += report.end_ns.saturating_sub(report.start_ns);
        Ok(())
    }

    /// Returns the picture that the GPU has made.
    pub(crate) fn read_back(&self) -> Result<Surface, Failure> {
        let guard = self
            .picture
            .lock(Access::READ)
            .map_err(while_doing("reading the picture"))?;
        let size = self.scene.picture;
        // CAST: the picture fits the memory of the program.
        let bytes = guard.to_vec(0, size.bytes() as usize);
        guard.unlock()?;
        Ok(Surface::from_bytes(size, &bytes))
    }

    /// Writes the packets of some steps. A texture is given up after its last step.
    fn encode(&self, steps: &[Step]) -> Buffer {
        let mut commands = Commands::new(self.limits.slots);
        let mut rest = steps;
        while let [step, later @ ..] = rest {
            self.packet(&mut commands, step);
            if let Some(texture) = step.texture() {
                if later.iter().all(|step| step.texture() != Some(texture)) {
                    commands.unbind(self.textures[texture].handle());
                }
            }
            rest = later;
        }
        commands.finish()
    }

    /// Writes the packet of one step.
    fn packet(&self, commands: &mut Commands, step: &Step) {
        match *step {
            Step::Fill {
                target,
                rectangle,
                pixel,
            } => {
                let (allocation, size) = self.surface(target);
                let area = Area {
                    pitch: size.pitch(),
                    width: rectangle.size.pitch(),
                    height: rectangle.size.height,
                };
                commands.fill(allocation.at(rectangle.offset(size)), pixel, area);
            }
            Step::Blend {
                texture,
                rectangle,
                x,
                y,
            } => {
                let (source, source_size) = self.surface(Target::Texture(texture));
                let (picture, picture_size) = self.surface(Target::Picture);
                let to = Rectangle { x, y, ..rectangle };
                let form = Form {
                    dst_pitch: picture_size.pitch(),
                    src_pitch: source_size.pitch(),
                    width: rectangle.size.pitch(),
                    height: rectangle.size.height,
                };
                commands.blend(
                    picture.at(to.offset(picture_size)),
                    source.at(rectangle.offset(source_size)),
                    form,
                );
            }
        }
    }

    /// Returns allocation and size of a surface.
    fn surface(&self, target: Target) -> (&Allocation, Size) {
        match target {
            Target::Picture => (&self.picture, self.scene.picture),
            Target::Texture(texture) => {
                (&self.textures[texture], self.scene.textures[texture].size)
            }
        }
    }

    /// Makes a sentence of an error, with the state of the device if that is not well.
    fn explain(&self, what: &str, error: libvidmm::Error) -> Failure {
        let mut sentence = format!("{what} failed: {error}");
        let state = self.device.state().map(|state| state.state);
        if let Ok(name) = state.map(names::device_state) {
            if name != "ACTIVE" {
                sentence.push_str(&format!("; the device is in state {name}"));
            }
        }
        Failure(sentence)
    }
}

impl Limits {
    /// Reads what node and segment allow.
    fn new(adapter: &Adapter, place: &Place, scene: &Scene) -> Result<Self, Failure> {
        let free = place.capacity.saturating_sub(scene.picture.bytes());
        if free < scene.largest_texture() {
            return Err(Failure(format!(
                "a picture of {} x {} pixels and one texture do not fit segment {} together: \
                 choose a smaller --size, or another --segment",
                scene.picture.width, scene.picture.height, place.segment.id
            )));
        }
        let least = |limit: u32, each: usize| (limit as usize / each).max(1);
        let node = &place.node;
        let step_bytes = 4 * abi::engine::BLEND_DWORDS;
        Ok(Self {
            texture_bytes: (free / 4).max(scene.largest_texture()),
            textures: least(node.max_allocs, 1).saturating_sub(1).max(1),
            // A step has two operands at most and gives up one texture.
            steps: least(node.max_patches, 3).min(least(node.max_dma_bytes, step_bytes)),
            slots: adapter.info()?.patch_slots,
        })
    }
}

/// Cuts the steps of a scene into those of one buffer each.
fn batches(scene: &Scene, limits: &Limits) -> Vec<std::ops::Range<usize>> {
    let mut batches = Vec::new();
    let mut start = 0;
    let mut named: Vec<usize> = Vec::new();
    let mut bytes = 0;
    for (number, step) in scene.steps.iter().enumerate() {
        let texture = step.texture().filter(|texture| !named.contains(texture));
        let more = texture.map_or(0, |texture| scene.textures[texture].size.bytes());
        let is_full = bytes + more > limits.texture_bytes
            || named.len() + usize::from(texture.is_some()) > limits.textures
            || number - start >= limits.steps;
        if is_full && number > start {
            batches.push(start..number);
            start = number;
            named.clear();
            bytes = 0;
        }
        if let Some(texture) = step.texture().filter(|texture| !named.contains(texture)) {
            named.push(texture);
            bytes += scene.textures[texture].size.bytes();
        }
    }
    batches.push(start..scene.steps.len());
    batches
}

#[cfg(test)]
mod tests {
    use super::super::scene::textures;
    use super::*;

    const LIMITS: Limits = Limits {
        texture_bytes: 2 << 20,
        textures: 4095,
        steps: 5000,
        slots: 8,
    };

    fn scene() -> Scene {
        let picture = Size {
            width: 320,
            height: 240,
        };
        let textures = textures(2, 10 << 20);
        let surfaces: Vec<_> = textures.iter().map(|t| Surface::new(t.size)).collect();
        Scene::new(2, picture, textures, &surfaces)
    }

    #[test]
    fn batches_hold_every_step_once_and_in_order() {
        let scene = scene();

        let batches = batches(&scene, &LIMITS);

        let mut ends = batches.iter().map(|batch| batch.end);
        let starts = batches.iter().skip(1).map(|batch| batch.start);
        assert!(ends.clone().zip(starts).all(|(end, start)| end == start));
        assert_eq!(ends.next_back(), Some(scene.steps.len()));
        assert!(batches.len() > 10);
    }

    #[test]
    fn textures_of_a_batch_fit_the_bytes() {
        let scene = scene();

        for batch in batches(&scene, &LIMITS) {
            let steps = scene.steps[batch].iter();
            let mut textures: Vec<_> = steps.filter_map(Step::texture).collect();
            textures.sort_unstable();
            textures.dedup();
            let bytes = textures.iter().map(|t| scene.textures[*t].size.bytes());
            assert!(bytes.sum::<u64>() <= LIMITS.texture_bytes);
        }
    }

    #[test]
    fn batches_are_no_longer_than_allowed() {
        let limits = Limits { steps: 3, ..LIMITS };

        let batches = batches(&scene(), &limits);

        assert!(batches.iter().all(|batch| (1..=3).contains(&batch.len())));
    }
}
