//! Bodies that are too large for memory.

use std::time::Duration;

use actix_web::{
    HttpResponse,
    http::StatusCode,
    web::{Bytes, Data},
};
use futures_util::{Stream, StreamExt as _};
use launchway_domain::{
    deployments::StepError,
    sources::{PushRequest, Received, Spool},
};
use tokio::{sync::OwnedSemaphorePermit, time::timeout};

use super::refusal;
use crate::Api;

/// The time that a request waits while others send large bodies.
const PATIENCE: Duration = Duration::from_secs(30);
/// The longest time that a body may take.
const LONGEST: Duration = Duration::from_secs(3600);
/// A body that is too large is still read to this many times its limit, so that the client reads the response.
const DRAINED: u64 = 4;

/// The reason why a body is not stored.
#[derive(Debug)]
pub(crate) enum Refused {
    /// It ended early, or did not come in time.
    Incomplete(&'static str),
    /// It is larger than allowed; the sentence is for the user.
    TooLarge(String),
    /// It could not be stored.
    Failed(StepError),
}

/// A body that arrived completely, with its beginning.
pub(crate) struct Collected {
    pub(crate) head: Vec<u8>,
    pub(crate) body: Result<Received, Refused>,
}

/// Reads a body into `spool`.
pub(crate) async fn collect<E>(
    mut payload: impl Stream<Item = Result<Bytes, E>> + Unpin,
    mut spool: Box<dyn Spool>,
    idle: Duration,
) -> Collected {
    let (mut head, mut refused) = (Vec::new(), None);
    let (mut stored, mut drained) = (0_u64, 0_u64);
    let read = async {
        loop {
            let piece = match timeout(idle, payload.next()).await {
                Err(_elapsed) => return Some(Refused::Incomplete("the body did not arrive in time")),
                Ok(Some(Err(_broken))) => return Some(Refused::Incomplete("the body ended early")),
                Ok(Some(Ok(piece))) => piece,
                Ok(None) => return refused,
            };
            let missing = PushRequest::LONGEST.saturating_sub(head.len());
            head.extend(piece.iter().take(missing));
            if refused.is_some() {
                drained += piece.len() as u64;
                if drained > stored.saturating_mul(DRAINED) {
                    return refused;
                }
                continue;
            }
            match spool.write(&piece).await {
                Ok(()) => stored += piece.len() as u64,
                Err(StepError::Rejected(sentence)) => refused = Some(Refused::TooLarge(sentence)),
                Err(error) => return Some(Refused::Failed(error)),
            }
        }
    };
    let refused = timeout(LONGEST, read).await;
    let body = match refused {
        Err(_elapsed) => Err(Refused::Incomplete("the body did not arrive within an hour")),
        Ok(Some(refused)) => Err(refused),
        Ok(None) => spool.finish().await.map_err(Refused::Failed),
    };
    Collected { head, body }
}

/// Reads a small body into memory.
pub(super) async fn small<E>(
    mut payload: impl Stream<Item = Result<Bytes, E>> + Unpin,
    limit: usize,
    idle: Duration,
) -> Result<Vec<u8>, HttpResponse> {
    let mut all = Vec::new();
    loop {
        match timeout(idle, payload.next()).await {
            Err(_elapsed) => {
                return Err(refusal(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time"));
            }
            Ok(Some(Err(_broken))) => return Err(refusal(StatusCode::BAD_REQUEST, "the body ended early")),
            Ok(Some(Ok(piece))) if all.len() + piece.len() > limit => {
                return Err(refusal(StatusCode::PAYLOAD_TOO_LARGE, "the request is too large"));
            }
            Ok(Some(Ok(piece))) => all.extend_from_slice(&piece),
            Ok(None) => return Ok(all),
        }
    }
}

/// Acquires a permit for the work of a git client, so that many of them do not exhaust the machine.
pub(crate) async fn permit(api: &Data<Api>) -> Result<OwnedSemaphorePermit, HttpResponse> {
    let waited = timeout(PATIENCE, std::sync::Arc::clone(&api.large_sources).acquire_owned()).await;
    let busy = || {
        refusal(StatusCode::TOO_MANY_REQUESTS, "too many clients push or fetch now; try again in a moment")
    };
    waited.map_err(|_elapsed| busy())?.map_err(|_closed| busy())
}
