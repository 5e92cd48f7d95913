//! The house rules, held by tests: each failure names the rule, the place and the cure.

mod dependencies;
mod docs;
mod files;
mod migrations;
mod problems;
mod workspace;
