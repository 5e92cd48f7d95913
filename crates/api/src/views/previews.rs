//! The JSON of previews.

use launchway_application::previews::{ShownPreview, ShownPreviewSettings};
use launchway_domain::previews::CodeHostToken;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::applications::json_of;
use crate::timestamp::Moment;

/// The preview of a pull or merge request.
#[derive(Serialize, ToSchema)]
#[schema(as = Preview)]
pub(crate) struct PreviewView {
    /// The number of the request.
    #[schema(example = 7)]
    number: i64,
    #[schema(example = "github")]
    code_host: &'static str,
    /// `active` if an application runs it, `waiting` before the first approval.
    #[schema(example = "active")]
    state: &'static str,
    /// The branch of the request.
    branch: String,
    /// The head of the request, as it was last reported.
    commit: String,
    /// True if the branch is in a fork.
    is_from_fork: bool,
    /// True if the commit is of a fork, and no member approved it.
    awaits_approval: bool,
    /// The application that runs it.
    application_id: Option<Uuid>,
    #[schema(example = "pr-7-shop")]
    name: String,
    /// The status of that application.
    #[schema(example = "running")]
    status: String,
    /// The address of it; empty while it has none.
    #[schema(example = "http://pr-7-shop-preview.acme.localhost")]
    url: String,
    expires_at: Moment,
    created_at: Moment,
    updated_at: Moment,
}

impl From<ShownPreview> for PreviewView {
    fn from(shown: ShownPreview) -> Self {
        let ShownPreview { summary, url } = shown;
        let (preview, application) = (summary.preview, summary.application);
        let name = application.as_ref().map(|running| running.blueprint.name.to_string());
        let status = application.as_ref().map(|running| running.status.state.as_str().to_owned());
        Self {
            number: preview.number.get(),
            code_host: preview.code_host.as_str(),
            state: preview.state.as_str(),
            awaits_approval: preview.awaits_approval(),
            commit: preview.head.map(String::from).unwrap_or_default(),
            branch: preview.branch,
            is_from_fork: preview.is_from_fork,
            application_id: application.map(|running| running.id.into()),
            name: name.unwrap_or_default(),
            status: status.unwrap_or_default(),
            url: url.unwrap_or_default(),
            expires_at: preview.expires_at.into(),
            created_at: preview.created_at.into(),
            updated_at: preview.updated_at.into(),
        }
    }
}

/// The previews of an application.
#[derive(Serialize, ToSchema)]
#[schema(as = Previews)]
pub(crate) struct PreviewsView {
    previews: Vec<PreviewView>,
}

impl From<Vec<ShownPreview>> for PreviewsView {
    fn from(shown: Vec<ShownPreview>) -> Self {
        Self { previews: shown.into_iter().map(PreviewView::from).collect() }
    }
}

/// The preview settings of an application.
#[derive(Serialize, ToSchema)]
#[schema(as = PreviewSettings)]
pub(crate) struct PreviewSettingsView {
    application_id: Uuid,
    enabled: bool,
    /// The most previews at once.
    #[schema(example = 5)]
    limit: u16,
    #[schema(example = 168)]
    lifetime_hours: u16,
    /// The variables of the application that its previews get too.
    shared_variables: Vec<String>,
    run_commands: bool,
    /// An object as JSON text.
    #[schema(example = "{}")]
    build_variables: String,
    /// An object as JSON text.
    #[schema(example = "{}")]
    environment_variables: String,
    updated_at: Moment,
}

impl From<ShownPreviewSettings> for PreviewSettingsView {
    fn from(shown: ShownPreviewSettings) -> Self {
        let ShownPreviewSettings { settings, variables } = shown;
        Self {
            application_id: settings.application.into(),
            enabled: settings.is_enabled,
            limit: settings.limit.get(),
            lifetime_hours: settings.lifetime.hours(),
            shared_variables: settings.shared.iter().map(str::to_owned).collect(),
            run_commands: settings.runs_commands,
            build_variables: json_of(&variables.build),
            environment_variables: json_of(&variables.environment),
            updated_at: settings.updated_at.into(),
        }
    }
}

/// A token for commit statuses, without its value.
#[derive(Serialize, ToSchema)]
#[schema(as = CodeHostToken)]
pub(crate) struct CodeHostTokenView {
    #[schema(example = "github.com")]
    host: String,
    /// The address of the API, if it is not the default of the kind of code host.
    api_url: Option<String>,
    updated_at: Moment,
    /// The reason why the last report failed.
    last_error: Option<String>,
}

impl From<CodeHostToken> for CodeHostTokenView {
    fn from(token: CodeHostToken) -> Self {
        Self {
            host: token.host.into(),
            api_url: token.api.map(Into::into),
            updated_at: token.updated_at.into(),
            last_error: token.problem,
        }
    }
}

/// The tokens of an organization.
#[derive(Serialize, ToSchema)]
#[schema(as = CodeHostTokens)]
pub(crate) struct CodeHostTokensView {
    tokens: Vec<CodeHostTokenView>,
}

impl From<Vec<CodeHostToken>> for CodeHostTokensView {
    fn from(tokens: Vec<CodeHostToken>) -> Self {
        Self { tokens: tokens.into_iter().map(CodeHostTokenView::from).collect() }
    }
}
