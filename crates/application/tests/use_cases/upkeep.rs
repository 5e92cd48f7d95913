//! Upkeep.
