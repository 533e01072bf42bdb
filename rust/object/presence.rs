// SPDX-License-Identifier: GPL-2.0

//! What the backend is told about objects that come and go (BCK-1).
//!
//! An object that the backend knows holds a [`Presence`]; dropping it tells the backend that the
//! object is gone.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::backend::{
    Backend,
    ContextDescription,
    EngineContext,
    ObjectCall, //
};

/// The backend knows an object.
pub(super) struct Presence {
    backend: Arc<dyn Backend>,
    end: ObjectCall,
}

impl Presence {
    /// Announces an object with `begin`; `end` follows when the presence is dropped.
    ///
    /// # Errors
    ///
    /// Whatever keeps the backend from creating its side.
    pub(super) fn new(
        backend: &Arc<dyn Backend>,
        begin: ObjectCall,
        end: ObjectCall,
    ) -> Result<Self> {
        backend.object(begin)?;
        Ok(Self {
            backend: backend.clone(),
            end,
        })
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        // Going never fails.
        let _ = self.backend.object(self.end);
    }
}

/// The backend's side of a context.
pub(super) struct ContextPresence {
    backend: Arc<dyn Backend>,
    engine: Arc<dyn EngineContext>,
}

impl ContextPresence {
    /// Creates the backend's side of a context.
    ///
    /// # Errors
    ///
    /// As [`Backend::create_context`].
    pub(super) fn new(backend: &Arc<dyn Backend>, description: ContextDescription) -> Result<Self> {
        Ok(Self {
            engine: backend.create_context(description)?,
            backend: backend.clone(),
        })
    }

    /// Returns it.
    pub(super) fn engine(&self) -> &Arc<dyn EngineContext> {
        &self.engine
    }
}

impl Drop for ContextPresence {
    fn drop(&mut self) {
        self.backend.destroy_context(&*self.engine);
    }
}
