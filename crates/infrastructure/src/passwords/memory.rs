//! The memory that Argon2 fills, used again and again.

use std::sync::{Mutex, MutexGuard, PoisonError};

use argon2::{Argon2, Block, Params, password_hash};

/// The memory of runs that are over, for the next ones.
///
/// Each run needs much, on whichever of many threads it is. Were it allocated there, the allocator
/// would keep it for that thread when it is free again, until each thread had its own.
pub(super) struct Memory {
    /// How many blocks a run usually needs.
    usual: usize,
    /// Never more than runs that were made at once, because each gives back what it took.
    idle: Mutex<Vec<Vec<Block>>>,
}

impl Memory {
    /// Memory that is enough for runs with these parameters.
    pub(super) fn of_runs_with(params: &Params) -> Self {
        Self { usual: params.block_count(), idle: Mutex::default() }
    }

    /// Fills `output` with the hash of the password.
    ///
    /// What earlier runs left in the memory does not matter: every block is written before it is
    /// read.
    pub(super) fn run(
        &self,
        argon2: &Argon2<'_>,
        password: &str,
        salt: &[u8],
        output: &mut [u8],
    ) -> Result<(), password_hash::Error> {
        let needed = argon2.params().block_count();
        if needed > self.usual {
            // Somebody else made the hash. What it takes is not kept, for it may be any amount.
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

    /// How many runs could begin without allocating.
    #[cfg(test)]
    pub(super) fn idle(&self) -> usize {
        self.lock().len()
    }
}
