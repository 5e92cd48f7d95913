//! The project's rules, enforced by tests: each failure names the rule, the location and the remedy.

mod dependencies;
mod docs;
mod files;
mod migrations;
mod problems;
mod public_api;
mod vocabulary;
mod workspace;
