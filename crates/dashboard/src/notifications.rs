//! Notifications: the channels of the organization, test messages and deliveries.

mod channels;

use actix_web::{
    HttpResponse,
    web::{ServiceConfig, get, post},
};
use askama::Template;
use launchway_application::Error;
use launchway_domain::{
    auth::{Action, Resource},
    notifications::{ChannelKind, Delivery, DeliveryFilter, DeliveryState},
};

use self::channels::{ChannelCard, MailCard};
use crate::{
    applications::State,
    context::PageContext,
    error::PageError,
    form::{Form, Submitted},
    format::Time,
    frame::{Frame, Section, page_after, see_other},
    pages::{Choice, Pager},
    router::PREFIX,
};

/// The number of deliveries of a page.
const PAGE: i64 = 10;

pub(crate) fn routes(config: &mut ServiceConfig) {
    config
        .route("/notifications", get().to(notifications_page))
        .route("/notifications/webhook", post().to(channels::save_webhook))
        .route("/notifications/smtp", post().to(channels::save_smtp))
        .route("/notifications/switch", post().to(channels::switch))
        .route("/notifications/delete", post().to(channels::delete))
        .route("/notifications/secret", post().to(channels::rotate_secret))
        .route("/notifications/test", post().to(try_channel))
        .route("/notifications/replay", post().to(replay));
}

/// A delivery in the list.
struct DeliveryRow {
    id: String,
    event: &'static str,
    channel: &'static str,
    state: State,
    /// The number of attempts, and the result of the last one.
    attempts: String,
    problem: String,
    at: Time,
    can_replay: bool,
}

impl From<Delivery> for DeliveryRow {
    fn from(delivery: Delivery) -> Self {
        let kind = match delivery.state {
            DeliveryState::Delivered => "good",
            DeliveryState::Dead => "bad",
            DeliveryState::Pending | DeliveryState::Sending => "busy",
        };
        let last = delivery.attempts.last();
        let status = last.and_then(|attempt| attempt.status).map(|status| format!(" · {status}"));
        let error = last.map(|attempt| attempt.error.clone()).filter(|error| !error.is_empty());
        Self {
            id: delivery.id.to_string(),
            event: delivery.event.as_str(),
            channel: delivery.channel.as_str(),
            state: State { text: delivery.state.as_str(), kind },
            attempts: format!("{}{}", last.map_or(0, |attempt| attempt.number), status.unwrap_or_default()),
            problem: error.unwrap_or(delivery.reason),
            at: Time(delivery.created_at),
            can_replay: delivery.state == DeliveryState::Dead,
        }
    }
}

#[derive(Template)]
#[template(path = "notifications.html")]
struct NotificationsPage {
    frame: Frame,
    channels: Vec<ChannelCard>,
    mail: MailCard,
    /// The new signing secret, which is shown once.
    secret: Option<String>,
    deliveries: Vec<DeliveryRow>,
    pager: Pager,
    states: Vec<Choice>,
    kinds: Vec<Choice>,
    is_filtered: bool,
    may_update: bool,
}

async fn notifications_page(context: PageContext) -> Result<HttpResponse, PageError> {
    show(&context, None, None).await
}

/// Shows the page; `refused` is a form that was not accepted, and `secret` a signing secret to show once.
async fn show(
    context: &PageContext,
    refused: Option<(&Form, &PageError)>,
    secret: Option<String>,
) -> Result<HttpResponse, PageError> {
    let filter = DeliveryFilter { state: context.choice("status")?, channel: context.choice("type")? };
    let notifications = &context.services().notifications;
    let found = notifications.deliveries(&context.visitor, filter, context.page_request(PAGE)?).await?;
    let (state, kind) = (context.text("status"), context.text("type"));
    let error = refused.map(|(_, error)| error);
    let form = refused.map(|(form, _)| form);
    page_after(
        error,
        &NotificationsPage {
            frame: context.frame(Section::Notifications, "Notifications").with_error(error),
            channels: channels::cards(context, form).await?,
            mail: channels::mail_card(context, form).await?,
            secret,
            pager: Pager::of(&found, &[("status", &state), ("type", &kind)]),
            deliveries: found.items.into_iter().map(DeliveryRow::from).collect(),
            states: DeliveryState::ALL.iter().map(|each| Choice::named(each.as_str(), &state)).collect(),
            kinds: ChannelKind::ALL.iter().map(|each| Choice::named(each.as_str(), &kind)).collect(),
            is_filtered: filter != DeliveryFilter::default(),
            may_update: context.may(Resource::Notification, Action::Update),
        },
    )
}

/// Returns to the page after a change, or shows it with the error.
async fn finish(submitted: &Submitted, outcome: Result<&str, Error>) -> Result<HttpResponse, PageError> {
    match outcome {
        Ok(done) => Ok(see_other(format!("{PREFIX}/notifications?done={done}"))),
        Err(error) => show(&submitted.context, Some((&submitted.form, &error.into())), None).await,
    }
}

async fn try_channel(submitted: Submitted) -> Result<HttpResponse, PageError> {
    let (context, form) = (&submitted.context, &submitted.form);
    let tried = match channels::kind(form) {
        Ok(kind) => context.services().notifications.try_channel(&context.visitor, kind).await,
        Err(error) => Err(error),
    };
    let outcome = match tried {
        Ok(tried) if tried.delivered => Ok("tested"),
        Ok(tried) => {
            let text =
                format!("the test message by {} was not delivered: {}", tried.channel.as_str(), tried.error);
            Err(Error::Conflict(text))
        }
        Err(error) => Err(error),
    };
    finish(&submitted, outcome).await
}

async fn replay(submitted: Submitted) -> Result<HttpResponse, PageError> {
    let (context, form) = (&submitted.context, &submitted.form);
    let replayed = match form.text("id").parse() {
        Ok(id) => context.services().notifications.replay(&context.visitor, id).await,
        Err(_) => Err(Error::NotFound("the delivery")),
    };
    finish(&submitted, replayed.map(|_| "replayed")).await
}
