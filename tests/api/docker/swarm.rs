//! Applications on the machines of a Docker Swarm: three engines in network namespaces.

mod compositions;
mod extensions;
mod failures;
mod harness;
mod isolation;
mod lifecycle;
mod nodes;
mod packet_filter;
mod registry;
mod scenarios;
