//! Approves the previews of requests from forks.

use launchway_domain::{
    applications::Branch,
    auth::Actor,
    deployments::CommitHash,
    ids::ApplicationId,
    previews::Preview,
    store::{Rule, StoreError, Unique},
    webhooks::{HeadCommit, RequestNumber},
};

use super::{ATTEMPTS, CREATE, Previews, ShownPreview, start::Start};
use crate::{Error, applications::APPLICATION};

const PREVIEW: Error = Error::NotFound("the preview");

impl Previews {
    /// Approves a commit of a request from a fork, and deploys it as the preview of the request. The approval holds for
    /// this commit only.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such application or request, [`Error::Conflict`] when the request is not
    /// from a fork, was moved to another commit, was approved before, or the application has no room for another
    /// preview, [`Error::QuotaExceeded`] when the organization has not, [`Error::Forbidden`] without the permission
    /// `deploy:create`.
    pub async fn approve(
        &self,
        actor: &Actor,
        id: ApplicationId,
        number: RequestNumber,
        commit: &CommitHash,
    ) -> Result<ShownPreview, Error> {
        let scope = actor.require(CREATE)?;
        let mut attempt = 1;
        loop {
            let parent = self.ports.applications.get(scope, id).await?.ok_or(APPLICATION)?;
            let known = self.ports.previews.of_request(scope, &[id], number).await?;
            let preview = known.into_iter().next().ok_or(PREVIEW)?;
            require_approvable(&preview, commit)?;
            let settings = self.stored(scope, id).await?.filter(|settings| settings.is_enabled);
            let settings = settings.ok_or_else(|| {
                Error::Conflict("the application has no previews: turn them on first".to_owned())
            })?;
            let title = format!("{} {number}", preview.code_host.request_title());
            let username = actor.user().username.as_str();
            let start = Start {
                parent: &parent,
                settings: &settings,
                seen: Some(preview.updated_at),
                branch: reference(&preview)?,
                preview: Preview { approved: Some(commit.clone()), ..preview },
                commit: Some(commit.clone()),
                by: username.to_owned(),
                reason: format!("by {username}, who approved {title} from a fork"),
                author: actor.author(),
            };
            let started = self.start(start).await?;
            let mut writes = started.writes;
            writes.push(started.entry);
            match self.context.store.commit(writes).await {
                Ok(()) => {
                    self.started(scope, started.application).await;
                    let shown = self.shown(scope, id).await?;
                    return shown.into_iter().find(|it| it.summary.preview.number == number).ok_or(PREVIEW);
                }
                Err(StoreError::Stale) if attempt < ATTEMPTS => attempt += 1,
                Err(StoreError::Stale) => {
                    return Err(Error::Conflict("the request was changed in the meantime".to_owned()));
                }
                Err(StoreError::Refused(Rule::MostPreviews)) => {
                    let most = settings.limit.get();
                    return Err(Error::Conflict(format!("the application has {most} previews already")));
                }
                Err(StoreError::Taken(Unique::ApplicationName)) => {
                    let sentence = "another application has the name of the preview: rename it first";
                    return Err(Error::Conflict(sentence.to_owned()));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn require_approvable(preview: &Preview, commit: &CommitHash) -> Result<(), Error> {
    let refused = |reason: String| Err(Error::Conflict(reason));
    let head = preview.head.as_ref().and_then(HeadCommit::full);
    match head {
        _ if !preview.is_from_fork => {
            refused("the request is not from a fork: it needs no approval".to_owned())
        }
        Some(head) if head != *commit => {
            refused(format!("the request is at commit {} by now: look at it first", head.short()))
        }
        None => refused("the commit of the request is not known".to_owned()),
        Some(_) if !preview.awaits_approval() => {
            refused(format!("commit {} was approved before, or the request was closed", commit.short()))
        }
        Some(_) => Ok(()),
    }
}

/// Returns the reference of the base repository that leads to the commit.
fn reference(preview: &Preview) -> Result<Branch, Error> {
    let reference = preview.code_host.request_reference(preview.number);
    reference.and_then(|reference| reference.parse().ok()).ok_or_else(|| {
        let host = preview.code_host.title();
        Error::Conflict(format!("{host} gives no access to the commits of forks"))
    })
}
