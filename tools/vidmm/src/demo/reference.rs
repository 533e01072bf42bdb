// SPDX-License-Identifier: GPL-2.0

//! The picture as it must be: the steps of a scene, carried out by the CPU.

use super::scene::{
    Scene,
    Step,
    Target, //
};
use super::surface::Surface;

/// Carries out all steps of `scene` on `textures`, and returns the picture.
pub(crate) fn picture(scene: &Scene, mut textures: Vec<Surface>) -> Surface {
    let mut picture = Surface::new(scene.picture);
    for step in &scene.steps {
        match *step {
            Step::Fill {
                target,
                rectangle,
                pixel,
            } => {
                let surface = match target {
                    Target::Picture => &mut picture,
                    Target::Texture(texture) => &mut textures[texture],
                };
                surface.fill(rectangle, pixel);
            }
            Step::Blend {
                texture,
                rectangle,
                x,
                y,
            } => picture.blend(x, y, &textures[texture], rectangle),
        }
    }
    picture
}

#[cfg(test)]
mod tests {
    use super::super::{
        scene,
        surface::{
            Rectangle,
            Size, //
        },
    };
    use super::*;

    #[test]
    fn whole_picture_is_covered_and_opaque() {
        let size = Size {
            width: 256,
            height: 192,
        };
        let textures = scene::textures(1, 1 << 20);
        let surfaces: Vec<_> = textures.iter().map(|t| t.draw()).collect();
        let scene = Scene::new(1, size, textures, &surfaces);

        let picture = picture(&scene, surfaces);

        assert!(picture.pixels().iter().all(|pixel| pixel >> 24 == 0xff));
    }

    #[test]
    fn fill_of_a_texture_shows_in_a_later_blend() {
        let size = Size {
            width: 256,
            height: 256,
        };
        let corner = Rectangle {
            x: 0,
            y: 0,
            size: Size {
                width: 1,
                height: 1,
            },
        };
        let textures = scene::textures(1, 1);
        let surfaces = vec![Surface::new(textures[0].size)];
        let mut scene = Scene::new(1, size, textures, &surfaces);
        scene.steps = vec![
            Step::Fill {
                target: Target::Texture(0),
                rectangle: corner,
                pixel: 0xff11_2233,
            },
            Step::Blend {
                texture: 0,
                rectangle: corner,
                x: 3,
                y: 0,
            },
        ];

        let picture = picture(&scene, surfaces);

        assert_eq!(picture.pixels()[3], 0xff11_2233);
    }
}
