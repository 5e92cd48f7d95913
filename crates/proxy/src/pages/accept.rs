//! Content negotiation by `Accept` headers.

use http::{
    HeaderMap,
    header::{ACCEPT, HeaderName},
};

/// The format of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Plain,
    Json,
    Html,
}

impl Format {
    /// Returns the format that is asked for by name. A client that accepts anything is a program whose
    /// output a person reads.
    pub(super) fn wanted_by(headers: &HeaderMap) -> Self {
        let weight = |format: &Self| weight(headers, ACCEPT, format.name()).unwrap_or(0);
        let named = [Self::Plain, Self::Json, Self::Html].into_iter().filter(|format| weight(format) > 0);
        named.max_by_key(weight).unwrap_or(Self::Plain)
    }

    pub(super) fn media_type(self) -> &'static str {
        match self {
            Self::Plain => "text/plain; charset=utf-8",
            Self::Json => "application/json",
            Self::Html => "text/html; charset=utf-8",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Plain => "text/plain",
            Self::Json => "application/json",
            Self::Html => "text/html",
        }
    }
}

/// Returns whether the client prefers HTML, as browsers do for navigation.
pub(crate) fn asks_for_html(headers: &HeaderMap) -> bool {
    weight(headers, ACCEPT, "text/html").is_some_and(|weight| weight > 0)
}

/// Returns the weight of `name` in the list of `header`, from 0 (not acceptable) to 1000, or `None` if the
/// list does not name it.
pub(crate) fn weight(headers: &HeaderMap, header: HeaderName, name: &str) -> Option<u16> {
    let lines = headers.get_all(header).iter().filter_map(|value| value.to_str().ok());
    let items = lines.flat_map(|line| line.split(','));
    let named = items.filter_map(|item| {
        let mut parts = item.split(';').map(str::trim);
        parts.next()?.eq_ignore_ascii_case(name).then(|| quality(parts))
    });
    named.max()
}

fn quality<'a>(mut parameters: impl Iterator<Item = &'a str>) -> u16 {
    let value = parameters.find_map(|parameter| parameter.strip_prefix(['q', 'Q'])?.strip_prefix('='));
    match value.map(str::parse::<f32>) {
        None => 1000,
        // NaN means 0: its cast is 0.
        Some(Ok(weight)) => (weight.clamp(0.0, 1.0) * 1000.0) as u16,
        Some(Err(_)) => 0,
    }
}

#[cfg(test)]
mod tests {
    use http::header::{ACCEPT_ENCODING, HeaderValue};

    use super::*;

    #[test]
    fn a_weight_is_what_the_list_says_of_the_name() {
        for (list, expected) in [
            ("br", Some(1000)),
            ("BR", Some(1000)),
            ("gzip, br;q=0.5", Some(500)),
            ("gzip, br ; q=0.25 ", Some(250)),
            ("br;Q=1", Some(1000)),
            ("br;q=0", Some(0)),
            ("br;q=0.000", Some(0)),
            ("br;q=7", Some(1000)),
            ("br;q=-1", Some(0)),
            ("br;q=nan", Some(0)),
            ("br;q=x", Some(0)),
            ("br;q=0, br", Some(1000)),
            ("gzip", None),
            ("brotli", None),
            ("*", None),
            ("", None),
            (",;,", None),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(list))]);
            assert_eq!(weight(&headers, ACCEPT_ENCODING, "br"), expected, "{list}");
        }
    }

    #[test]
    fn a_format_is_asked_for_by_name() {
        let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8";
        for (list, expected) in [
            (browser, Format::Html),
            ("text/html", Format::Html),
            ("text/html;q=0.1, application/json", Format::Json),
            ("application/json, text/html", Format::Html),
            ("application/json, text/plain, */*", Format::Json),
            ("text/plain", Format::Plain),
            ("text/html;q=0", Format::Plain),
            ("*/*", Format::Plain),
            ("image/png", Format::Plain),
            ("", Format::Plain),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(list))]);
            assert_eq!(Format::wanted_by(&headers), expected, "{list}");
        }
        assert_eq!(Format::wanted_by(&HeaderMap::new()), Format::Plain);
    }
}
