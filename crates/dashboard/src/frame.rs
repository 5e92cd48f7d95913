//! The parts that every page has.

use actix_web::{HttpRequest, HttpResponse, http::StatusCode, http::header::ContentType, web::Query};
use askama::Template;
use launchway_domain::auth::{Action, Resource};

use crate::{assets, error::PageError, visitor::Visitor};

/// A section of the navigation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Applications,
    Audit,
    Extensions,
    Installation,
    Notifications,
    Organization,
    Profile,
}

/// An organization that the visitor may select.
pub(crate) struct Choice {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) is_selected: bool,
}

/// The frame of a page for a visitor who is logged in.
pub(crate) struct Frame {
    pub(crate) title: String,
    pub(crate) section: Section,
    pub(crate) assets: &'static str,
    pub(crate) theme: &'static str,
    pub(crate) font: &'static str,
    pub(crate) size: u8,
    pub(crate) language: String,
    pub(crate) form_token: String,
    pub(crate) username: String,
    pub(crate) role: &'static str,
    pub(crate) organizations: Vec<Choice>,
    pub(crate) organization: String,
    pub(crate) administers: bool,
    pub(crate) reads_audit: bool,
    pub(crate) reads_extensions: bool,
    pub(crate) reads_notifications: bool,
    pub(crate) reads_organization: bool,
    /// A sentence about what was just done.
    pub(crate) notice: Option<&'static str>,
    pub(crate) error: Option<String>,
}

/// The sentences after a form was accepted, by the parameter `done`.
const NOTICES: &[(&str, &str)] = &[
    ("created", "The application was created. Its first deployment has begun."),
    ("redeployed", "A deployment of the current source has begun."),
    ("restarted", "The application restarts."),
    ("stopped", "The application was stopped."),
    ("rolled-back", "The rollback has begun."),
    ("cancelled", "The cancellation was requested."),
    ("deleted", "The application was deleted. Its containers and images are removed in the background."),
    ("saved", "The changes were saved."),
    ("saved-redeployed", "The changes were saved, and a deployment with them has begun."),
    ("added", "The domain was added."),
    ("removed", "The domain was removed."),
    ("password", "The password was changed, and all other sessions have ended."),
    ("ended", "The session was ended."),
    ("invited", "The user has an account, and is invited."),
    ("member-removed", "The member was removed."),
    ("token-revoked", "The token was revoked. It does not work any more."),
    ("accepted", "You are a member now. Switch to the organization in the menu."),
    ("declined", "The invitation was declined."),
    ("tested", "The receiver accepted the test message."),
    ("replayed", "The delivery is sent again."),
    ("channel-deleted", "The channel was deleted."),
    ("checked", "The installation was checked."),
    ("run", "The run has begun."),
    ("forked", "The fork was created for this organization. It runs by its own definition."),
    ("fork-deleted", "The fork was deleted. Its containers are removed in the background."),
    ("uninstalled", "The removal of its containers has begun. It takes a moment."),
    ("key-replaced", "The deploy key was replaced. Give the new one to your repositories."),
    ("two-factor-off", "Two-factor login was turned off."),
];

impl Frame {
    pub(crate) fn new(
        request: &HttpRequest,
        visitor: &Visitor,
        section: Section,
        title: impl Into<String>,
    ) -> Self {
        let settings = visitor.profile().settings.as_ref();
        let memberships = visitor.profile().memberships.iter();
        let own = visitor.membership();
        let selected = own.map(|own| own.organization.id);
        let organizations = memberships.map(|membership| Choice {
            id: membership.organization.id.to_string(),
            name: membership.organization.name.to_string(),
            is_selected: Some(membership.organization.id) == selected,
        });
        Self {
            title: title.into(),
            section,
            assets: assets::path(),
            theme: theme(settings.map(|settings| settings.theme.as_str())),
            font: font(settings.map(|settings| settings.font_family.as_str())),
            size: settings.map_or(16, |settings| settings.font_size.get()),
            language: settings.map_or_else(|| "en".to_owned(), |settings| settings.language.to_string()),
            form_token: visitor.form_token.clone(),
            username: visitor.user().username.to_string(),
            role: own.map_or("no organization", |own| own.membership.role.as_str()),
            organizations: organizations.collect(),
            organization: own.map(|own| own.organization.name.to_string()).unwrap_or_default(),
            administers: visitor.administers_installation(),
            reads_audit: visitor.may(Resource::Audit, Action::Read),
            reads_extensions: visitor.may(Resource::Extension, Action::Read),
            reads_notifications: visitor.may(Resource::Notification, Action::Read),
            reads_organization: visitor.may(Resource::Organization, Action::Read),
            notice: parameter(request, "done").and_then(|done| {
                NOTICES.iter().find(|(name, _)| *name == done).map(|(_, sentence)| *sentence)
            }),
            error: None,
        }
    }

    /// Shows an error above the page.
    pub(crate) fn with_error(self, error: Option<&PageError>) -> Self {
        match error {
            Some(error) => Self { error: Some(error.message().to_owned()), notice: None, ..self },
            None => self,
        }
    }

    pub(crate) fn is(&self, section: &str) -> bool {
        let own = match self.section {
            Section::Applications => "applications",
            Section::Audit => "audit",
            Section::Extensions => "extensions",
            Section::Installation => "installation",
            Section::Notifications => "notifications",
            Section::Organization => "organization",
            Section::Profile => "profile",
        };
        own == section
    }
}

/// Returns the theme that a stored value means. Values of other clients stay valid and follow the system.
fn theme(stored: Option<&str>) -> &'static str {
    match stored {
        Some("light") => "light",
        Some("dark") => "dark",
        _ => "system",
    }
}

/// Returns the font that a stored value means. No font is loaded: the browser shows what the machine has.
fn font(stored: Option<&str>) -> &'static str {
    match stored.map(str::to_ascii_lowercase).as_deref() {
        Some("serif" | "georgia" | "merriweather") => "serif",
        Some("mono" | "monospace" | "jetbrains mono" | "fira code") => "mono",
        Some("rounded" | "nunito") => "rounded",
        _ => "sans",
    }
}

/// Returns a parameter of the query.
pub(crate) fn parameter(request: &HttpRequest, name: &str) -> Option<String> {
    let pairs = Query::<Vec<(String, String)>>::from_query(request.query_string()).ok()?;
    pairs.into_inner().into_iter().find(|(known, _)| known == name).map(|(_, value)| value)
}

/// Returns a page with status 200.
pub(crate) fn page(template: &impl Template) -> Result<HttpResponse, PageError> {
    page_with(StatusCode::OK, template)
}

/// Returns a page with a status.
pub(crate) fn page_with(status: StatusCode, template: &impl Template) -> Result<HttpResponse, PageError> {
    let text = template.render().map_err(|error| {
        tracing::error!(%error, "template failed");
        PageError::internal()
    })?;
    Ok(HttpResponse::build(status).insert_header(ContentType::html()).body(text))
}

/// Returns a page after a form, with the status of the error that refused it.
pub(crate) fn page_after(
    error: Option<&PageError>,
    template: &impl Template,
) -> Result<HttpResponse, PageError> {
    page_with(error.map_or(StatusCode::OK, PageError::status), template)
}

/// Returns a redirect after a form was accepted.
pub(crate) fn see_other(location: impl Into<String>) -> HttpResponse {
    HttpResponse::SeeOther().insert_header(("location", location.into())).finish()
}
