//! The organization: members, invitations, API tokens, the deploy key and usage.

mod deploy_key;

use actix_web::{
    HttpResponse,
    web::{ServiceConfig, get, post},
};
use askama::Template;
use chrono::{NaiveDate, NaiveTime};
use launchway_application::{
    Error,
    auth::NewApiToken,
    organizations::{Added, NewMember, OrganizationChange},
};
use launchway_domain::{
    auth::{Action, ApiToken, Resource},
    organizations::Role,
    quotas::Usage,
    value::InvalidValue,
};

use crate::{
    context::PageContext,
    error::PageError,
    fields::Fields,
    form::{Form, Submitted},
    format::{Time, bytes},
    frame::{Frame, Section, page_after, see_other},
    router::PREFIX,
};

pub(crate) fn routes(config: &mut ServiceConfig) {
    config
        .route("/organization", get().to(organization_page))
        .route("/organization", post().to(save))
        .route("/organization/deploy-key", get().to(deploy_key::deploy_key_page))
        .route("/organization/deploy-key", post().to(deploy_key::replace))
        .route("/organization/members", post().to(add_member))
        .route("/organization/members/role", post().to(change_role))
        .route("/organization/members/remove", post().to(remove_member))
        .route("/organization/tokens", post().to(issue_token))
        .route("/organization/tokens/revoke", post().to(revoke_token))
        .route("/organization/invitations/accept", post().to(accept))
        .route("/organization/invitations/decline", post().to(decline));
}

struct MemberRow {
    id: String,
    name: String,
    email: String,
    role: &'static str,
    is_self: bool,
    since: Time,
}

struct InvitationRow {
    id: String,
    who: String,
    role: &'static str,
    until: Time,
}

struct TokenRow {
    id: String,
    name: String,
    permissions: String,
    created: Time,
    expires: Option<Time>,
}

struct UsageRow {
    name: String,
    used: String,
    limit: String,
    share: u64,
}

/// A secret that is shown once, and its explanation.
struct Shown {
    title: &'static str,
    about: String,
    secret: String,
}

#[derive(Template)]
#[template(path = "organization.html")]
struct OrganizationPage {
    frame: Frame,
    name: String,
    description: String,
    members: Vec<MemberRow>,
    invitations: Vec<InvitationRow>,
    offers: Vec<InvitationRow>,
    tokens: Vec<TokenRow>,
    usage: Vec<UsageRow>,
    may_update: bool,
    shown: Option<Shown>,
}

async fn organization_page(context: PageContext) -> Result<HttpResponse, PageError> {
    show(&context, None, None).await
}

async fn show(
    context: &PageContext,
    shown: Option<Shown>,
    error: Option<&PageError>,
) -> Result<HttpResponse, PageError> {
    let services = context.services();
    let detail = services.organizations.detail(&context.visitor, None).await?;
    let may_update = context.may(Resource::Organization, Action::Update);
    let invitations = match may_update {
        true => services.organizations.invitations(&context.visitor).await?,
        false => Vec::new(),
    };
    let offers = services.organizations.invitations_of(&context.visitor).await?;
    let tokens = services.api_tokens.list(&context.visitor).await?;
    let usage = services.quotas.usage(&context.visitor, None).await?;
    let members = detail.members.into_iter().map(|member| MemberRow {
        id: member.user.id.to_string(),
        name: member.user.username.to_string(),
        email: member.user.email.to_string(),
        role: member.membership.role.as_str(),
        is_self: member.user.id == context.visitor.user_id(),
        since: Time(member.membership.created_at),
    });
    let template = OrganizationPage {
        frame: context.frame(Section::Organization, "Organization").with_error(error),
        name: detail.organization.name.to_string(),
        description: detail.organization.description.to_string(),
        members: members.collect(),
        invitations: invitations
            .into_iter()
            .map(|one| InvitationRow {
                id: one.user.id.to_string(),
                who: one.user.email.to_string(),
                role: one.invitation.role.as_str(),
                until: Time(one.invitation.expires_at),
            })
            .collect(),
        offers: offers
            .into_iter()
            .map(|one| InvitationRow {
                id: one.invitation.id.to_string(),
                who: one.organization.name.to_string(),
                role: one.invitation.role.as_str(),
                until: Time(one.invitation.expires_at),
            })
            .collect(),
        tokens: tokens.into_iter().map(token_row).collect(),
        usage: usage.iter().map(usage_row).collect(),
        may_update,
        shown,
    };
    page_after(error, &template)
}

fn token_row(token: ApiToken) -> TokenRow {
    TokenRow {
        id: token.id.to_string(),
        name: token.name.to_string(),
        permissions: token.permissions.names().join(", "),
        created: Time(token.created_at),
        expires: token.expires_at.map(Time),
    }
}

fn usage_row(usage: &Usage) -> UsageRow {
    let is_bytes = usage.quota.resource.unit().as_str() == "bytes";
    let text = |amount: u64| if is_bytes { bytes(amount) } else { amount.to_string() };
    let limit = usage.quota.limit;
    UsageRow {
        name: usage.quota.resource.as_str().replace('_', " "),
        used: text(usage.used),
        limit: if limit == 0 { "no limit".to_owned() } else { text(limit) },
        share: (usage.used.saturating_mul(100)).checked_div(limit).unwrap_or_default().min(100),
    }
}

/// Returns to the page after a change, or shows it with the error.
async fn finish(context: &PageContext, outcome: Result<&str, Error>) -> Result<HttpResponse, PageError> {
    match outcome {
        Ok(done) => Ok(see_other(format!("{PREFIX}/organization?done={done}"))),
        Err(error) => show(context, None, Some(&error.into())).await,
    }
}

async fn save(Submitted { context, form }: Submitted) -> Result<HttpResponse, PageError> {
    let mut fields = Fields::of(&form);
    let name = fields.required("name");
    let description = fields.given("description");
    let outcome = match (name, description) {
        (Ok(name), Ok(description)) => {
            let change = OrganizationChange { name: Some(name), description: Some(description) };
            context.services().organizations.update(&context.visitor, change).await.map(|_| "saved")
        }
        _ => Err(fields.error()),
    };
    finish(&context, outcome).await
}

async fn add_member(Submitted { context, form }: Submitted) -> Result<HttpResponse, PageError> {
    let added = match new_member(&form) {
        Ok(new) => context.services().organizations.add_member(&context.visitor, new).await,
        Err(error) => Err(error),
    };
    let shown = match added {
        Ok(Added::Member(added)) => Some(Shown {
            title: "The setup token",
            about: format!(
                "{} is a member now. Give them this token: with it they set their password at {PREFIX}/join. It works \
                 once, for 24 hours, and is not shown again.",
                added.member.user.email
            ),
            secret: added.setup_token.expose().to_owned(),
        }),
        Ok(Added::Invited(sent)) => sent.token.map(|token| Shown {
            title: "The token of the invitation",
            about: format!(
                "{} has an account, and is invited. Give them this token, which the invitation needs. It is not shown \
                 again.",
                sent.detail.user.email
            ),
            secret: token.expose().to_owned(),
        }),
        Err(error) => return finish(&context, Err(error)).await,
    };
    match shown {
        Some(shown) => show(&context, Some(shown), None).await,
        None => finish(&context, Ok("invited")).await,
    }
}

fn new_member(form: &Form) -> Result<NewMember, Error> {
    let mut fields = Fields::of(form);
    let (email, role, username) =
        (fields.required("email"), fields.required("role"), fields.optional("username"));
    let (Ok(email), Ok(role), Ok(username)) = (email, role, username) else { return Err(fields.error()) };
    Ok(NewMember { email, role, username })
}

async fn change_role(Submitted { context, form }: Submitted) -> Result<HttpResponse, PageError> {
    let id = form.text("user_id").parse().map_err(|_invalid| Error::NotFound("the member"));
    let role = form.text("role").parse::<Role>().map_err(|invalid| Error::Invalid(format!("role {invalid}")));
    let outcome = match (id, role) {
        (Ok(id), Ok(role)) => {
            context.services().organizations.change_role(&context.visitor, id, role).await.map(|_| "saved")
        }
        (Err(error), _) | (_, Err(error)) => Err(error),
    };
    finish(&context, outcome).await
}

async fn remove_member(Submitted { context, form }: Submitted) -> Result<HttpResponse, PageError> {
    let outcome = match form.text("user_id").parse() {
        Ok(id) => context
            .services()
            .organizations
            .remove_member(&context.visitor, id)
            .await
            .map(|()| "member-removed"),
        Err(_) => Err(Error::NotFound("the member")),
    };
    finish(&context, outcome).await
}

async fn issue_token(Submitted { context, form }: Submitted) -> Result<HttpResponse, PageError> {
    let issued = match new_token(&form) {
        Ok(new) => context.services().api_tokens.issue(&context.visitor, new).await,
        Err(error) => Err(error),
    };
    match issued {
        Ok(issued) => {
            let shown = Shown {
                title: "The new API token",
                about: "Store it now: it is not shown again.".to_owned(),
                secret: issued.token.expose().to_owned(),
            };
            show(&context, Some(shown), None).await
        }
        Err(error) => finish(&context, Err(error)).await,
    }
}

fn new_token(form: &Form) -> Result<NewApiToken, Error> {
    let mut fields = Fields::of(form);
    let name = fields.required("name");
    let permissions = fields.optional_by("permissions", |text| {
        let names = text.split([',', ' ']).filter(|name| !name.is_empty());
        names.map(str::parse).collect::<Result<_, InvalidValue>>()
    });
    let expires_at = fields.optional_by("expires", |text| {
        let day = text.trim().parse::<NaiveDate>();
        let day = day.map_err(|_invalid| InvalidValue::text("a date such as 2027-12-31", text))?;
        Ok::<_, InvalidValue>(day.and_time(NaiveTime::MIN).and_utc())
    });
    let (Ok(name), Ok(permissions), Ok(expires_at)) = (name, permissions, expires_at) else {
        return Err(fields.error());
    };
    Ok(NewApiToken { name, permissions, expires_at })
}

async fn revoke_token(Submitted { context, form }: Submitted) -> Result<HttpResponse, PageError> {
    let outcome = match form.text("id").parse() {
        Ok(id) => context.services().api_tokens.revoke(&context.visitor, id).await.map(|()| "token-revoked"),
        Err(_) => Err(Error::NotFound("the token")),
    };
    finish(&context, outcome).await
}

async fn accept(Submitted { context, form }: Submitted) -> Result<HttpResponse, PageError> {
    let token = form.text("token").trim();
    let token = (!token.is_empty()).then(|| launchway_domain::secret::Secret::new(token.to_owned()));
    let outcome = match form.text("id").parse() {
        Ok(id) => {
            context.services().organizations.accept(&context.visitor, id, token).await.map(|_| "accepted")
        }
        Err(_) => Err(Error::NotFound("the invitation")),
    };
    finish(&context, outcome).await
}

async fn decline(Submitted { context, form }: Submitted) -> Result<HttpResponse, PageError> {
    let outcome = match form.text("id").parse() {
        Ok(id) => context.services().organizations.decline(&context.visitor, id).await.map(|()| "declined"),
        Err(_) => Err(Error::NotFound("the invitation")),
    };
    finish(&context, outcome).await
}
