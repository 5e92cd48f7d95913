//! Reusable memory of Argon2.

use std::sync::{Mutex, MutexGuard, PoisonError};

use argon2::{Argon2, Block, Params, password_hash};

/// The memory of finished runs, for the next ones.
///
/// Each run needs much memory, on any of many threads. If it were allocated there, the allocator would keep
/// the freed memory for that thread, until each thread had its own.
pub(super) struct Memory {
    /// The number of blocks of a run with the usual parameters.
    usual: usize,
    /// Never more than concurrent runs, because each returns what it took.
    idle: Mutex<Vec<Vec<Block>>>,
}

impl Memory {
    /// Returns memory for runs with these parameters.
    pub(super) fn of_runs_with(params: &Params) -> Self {
        Self { usual: params.block_count(), idle: Mutex::default() }
    }

    /// Fills `output` with the hash of the password.
    ///
    /// Earlier contents of the memory do not matter: every block is written before it is read.
    pub(super) fn run(
        &self,
        argon2: &Argon2<'_>,
        password: &str,
        salt: &[u8],
        output: &mut [u8],
    ) -> Result<(), password_hash::Error> {
        let needed = argon2.params().block_count();
        if needed > self.usual {
            // The hash was created elsewhere. Its memory is not kept, because it may be any amount.
            return Ok(argon2.hash_password_into(password.as_bytes(), salt, output)?);
        }
        let taken = self.lock().pop();
        let mut blocks = taken.unwrap_or_else(|| vec![Block::default(); self.usual]);
        let outcome = argon2.hash_password_into_with_memory(password.as_bytes(), salt, output, &mut blocks);
        self.lock().push(blocks);
        Ok(outcome?)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Vec<Block>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of runs that could begin without allocating.
    #[cfg(test)]
    pub(super) fn idle(&self) -> usize {
        self.lock().len()
    }
}
