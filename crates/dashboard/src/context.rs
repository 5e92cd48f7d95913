//! The context of a page: its request, its visitor, and the use cases.

use std::{future::Future, pin::Pin, str::FromStr};

use actix_web::{FromRequest, HttpRequest, dev::Payload, web::Data};
use launchway_application::{Error, Services};
use launchway_domain::{
    auth::{Action, Resource},
    page::PageRequest,
};

use crate::{
    Dashboard,
    error::PageError,
    frame::{Frame, Section, parameter},
    pages::requested,
    visitor::Visitor,
};

/// The context of a page for a visitor who is logged in.
pub(crate) struct PageContext {
    pub(crate) request: HttpRequest,
    pub(crate) dashboard: Data<Dashboard>,
    pub(crate) visitor: Visitor,
}

impl PageContext {
    /// Returns the use cases.
    pub(crate) fn services(&self) -> &Services {
        &self.dashboard.services
    }

    /// Returns the frame of the page.
    pub(crate) fn frame(&self, section: Section, title: impl Into<String>) -> Frame {
        Frame::new(&self.request, &self.visitor, section, title)
    }

    /// Returns whether the visitor has a permission, to decide what the page shows.
    pub(crate) fn may(&self, resource: Resource, action: Action) -> bool {
        self.visitor.may(resource, action)
    }

    /// Returns a parameter of the query, without spaces around it; empty if it is absent.
    pub(crate) fn text(&self, name: &str) -> String {
        parameter(&self.request, name).unwrap_or_default().trim().to_owned()
    }

    /// Parses a parameter of the query; `None` if it is empty or absent.
    pub(crate) fn choice<T: FromStr<Err: ToString>>(&self, name: &str) -> Result<Option<T>, Error> {
        let text = self.text(name);
        let value = Some(text).filter(|text| !text.is_empty()).map(|text| text.parse::<T>()).transpose();
        value.map_err(|invalid| Error::Invalid(format!("{name} {}", invalid.to_string())))
    }

    /// Returns the requested page of a list, of `size` items.
    pub(crate) fn page_request(&self, size: i64) -> Result<PageRequest, Error> {
        requested(parameter(&self.request, "page").as_deref(), size)
    }
}

impl FromRequest for PageContext {
    type Error = PageError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, PageError>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, visitor) = (request.clone(), Visitor::from_request(request, payload));
        Box::pin(async move {
            let visitor = visitor.await?;
            let dashboard = request.app_data::<Data<Dashboard>>().cloned().ok_or_else(PageError::internal)?;
            Ok(Self { request, dashboard, visitor })
        })
    }
}
