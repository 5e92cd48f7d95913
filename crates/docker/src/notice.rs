//! Removes a deprecation notice of docker from build logs.

use std::sync::Arc;

use async_trait::async_trait;
use launchway_domain::deployments::Output;

/// The beginning of the notice that clients print whenever they build without BuildKit. We choose that for
/// its limits, and readers of a build log can change nothing about it.
const NOTICE: &[u8] = b"DEPRECATED: The legacy builder is deprecated";

/// Writes everything but that notice.
pub(super) struct WithoutNotice(pub(super) Arc<dyn Output>);

#[async_trait]
impl Output for WithoutNotice {
    async fn write(&self, piece: &[u8]) {
        let rest = without_notice(piece);
        if !rest.is_empty() {
            self.0.write(rest).await;
        }
    }
}

/// The notice is one paragraph at the beginning of the client's error output.
fn without_notice(piece: &[u8]) -> &[u8] {
    if !piece.starts_with(NOTICE) {
        return piece;
    }
    let end = piece.windows(2).position(|pair| pair == b"\n\n");
    end.and_then(|end| piece.get(end + 2..)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_notice_is_left_out() {
        let notice =
            "DEPRECATED: The legacy builder is deprecated and will be removed.\n            Install\n\n";
        for rest in ["", "Step 1/2 : FROM x\n", "a\n\nb\n"] {
            assert_eq!(without_notice(format!("{notice}{rest}").as_bytes()), rest.as_bytes());
            assert_eq!(without_notice(rest.as_bytes()), rest.as_bytes());
        }
    }
}
