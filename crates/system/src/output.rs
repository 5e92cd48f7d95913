//! Output of programs that nobody reads.

use async_trait::async_trait;
use launchway_domain::deployments::Output;

/// Discards output.
#[derive(Debug, Clone, Copy)]
pub struct DiscardedOutput;

#[async_trait]
impl Output for DiscardedOutput {
    async fn write(&self, _piece: &[u8]) {}
}
