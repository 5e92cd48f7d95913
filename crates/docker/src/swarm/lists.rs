//! Lists of a Swarm's managers, which are asked again while they elect a leader.

use std::{pin::pin, time::Duration};

use futures_util::{
    StreamExt as _,
    future::{Either, select},
    stream::FuturesUnordered,
};
use hyper::StatusCode;
use serde::de::DeserializeOwned;
use tokio::time::{sleep, timeout};

use crate::{
    command::{Docker, unreadable},
    containers::Filters,
    errors::EngineError,
    socket::{Socket, SocketError, SwarmObjects},
};

/// The timeout of a list, and the time that managers without a leader get to elect one: it takes about eleven seconds when
/// the machine of the last one is lost.
const LIST_TIME: Duration = Duration::from_secs(15);
/// The time after which a manager is asked once more, beside the first request: it holds one that it passed on to a leader
/// that is lost, also when there is another leader.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// The pause before a manager without a leader is asked again.
const ELECTION_PAUSE: Duration = Duration::from_millis(500);
/// The answer of a manager that knows no leader.
const NO_LEADER: StatusCode = StatusCode::INTERNAL_SERVER_ERROR;

impl Docker {
    /// Waits until the managers of the Swarm have a leader, so that the next command is passed on to one. A manager holds
    /// a command that it passed on to a leader that is lost for 20 seconds, also if there is another leader by then.
    pub(crate) async fn wait_for_leader(&self) -> Result<(), EngineError> {
        let socket = self.swarm_socket().await?;
        within_list_time(find_leader(socket)).await.map_err(of_managers)
    }

    pub(super) async fn swarm_list<T: DeserializeOwned>(
        &self,
        objects: SwarmObjects,
        filters: &Filters,
    ) -> Result<Vec<T>, EngineError> {
        let socket = self.swarm_socket().await?;
        let list = || socket.swarm_objects(objects, filters, LIST_TIME);
        let again = async {
            sleep(ASK_AGAIN).await;
            find_leader(socket).await?;
            list().await
        };
        let listed = within_list_time(async {
            match select(pin!(list()), pin!(again)).await {
                // The managers elect a leader.
                Either::Left((Err(SocketError::Status(NO_LEADER)), again)) => again.await,
                Either::Left((listed, _)) | Either::Right((listed, _)) => listed,
            }
        });
        let listed = listed.await.map_err(of_managers)?;
        serde_json::from_slice(&listed).map_err(|_unexpected| unreadable())
    }

    async fn swarm_socket(&self) -> Result<&Socket, EngineError> {
        let no_socket = || EngineError::Unavailable("Swarm needs the Unix socket of the engine".to_owned());
        self.socket().await.ok_or_else(no_socket)
    }
}

/// Waits until a manager answers with what only a leader knows. It is asked again every second, by a short list.
async fn find_leader(socket: &Socket) -> Result<(), SocketError> {
    let filters = Filters::default();
    let ask = async |pause| {
        sleep(pause).await;
        socket.swarm_objects(SwarmObjects::Nodes, &filters, LIST_TIME).await
    };
    let mut asked = FuturesUnordered::from_iter([ask(Duration::ZERO)]);
    loop {
        tokio::select! {
            Some(answer) = asked.next() => match answer {
                Err(SocketError::Status(NO_LEADER)) => asked.push(ask(ELECTION_PAUSE)),
                answer => return answer.map(drop),
            },
            () = sleep(ASK_AGAIN) => asked.push(ask(Duration::ZERO)),
        }
    }
}

/// Limits the time of an answer of the managers.
async fn within_list_time<T>(answer: impl Future<Output = Result<T, SocketError>>) -> Result<T, SocketError> {
    let late = |_elapsed| {
        let reason =
            format!("no answer within {LIST_TIME:?}: the Swarm may have no leader, see `docker node ls`");
        Err(SocketError::Unavailable(reason))
    };
    timeout(LIST_TIME, answer).await.unwrap_or_else(late)
}

fn of_managers(error: SocketError) -> EngineError {
    match error {
        SocketError::Status(status) => EngineError::Unavailable(format!("the manager answered {status}")),
        error => error.into(),
    }
}
