//! Applications on the machines of a Docker Swarm: three engines in network namespaces.

mod failures;
mod isolation;
mod lifecycle;
mod nodes;
mod stage;
