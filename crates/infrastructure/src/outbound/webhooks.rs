//! Messages by HTTP.

use std::time::{Duration, SystemTime};

use http_body_util::BodyExt as _;
use hyper::{
    Request, Response,
    body::{Body, Bytes, Incoming},
    client::conn::http1,
    header::{self, HeaderMap, HeaderName, HeaderValue},
};
use hyper_util::rt::TokioIo;
use launchway_domain::{
    logs::Masker,
    notifications::{Answer, Post, SendError, WebhookUrl},
};
use tokio::{task::JoinSet, time::timeout_at};
use url::Url;

use super::{
    Outbound, Time,
    guard::RequiredPermission,
    text::{one_line, retry_after},
    tls::Stream,
};

/// The most bytes of a response body that are read.
const MOST: usize = 64 * 1024;
/// The most bytes of response headers.
const HEADERS: usize = 64 * 1024;
/// The length in bytes from which a part of a URL counts as a secret.
const LONG: usize = 16;
const USER_AGENT: &str = concat!("Launchway/", env!("CARGO_PKG_VERSION"));

pub(super) async fn post(outbound: &Outbound, post: &Post, time: Time) -> Result<Answer, SendError> {
    let host = post.url.host().to_string();
    let Exchanged { response, mut connection } =
        time.limit(&host, Box::pin(exchange(outbound, post, &host))).await?;
    let (head, mut body) = response.into_parts();
    // The status is the result. The rest of the body, and its speed, does not change it.
    let mut said = Vec::new();
    let _cut = timeout_at(time.end, read_beginning(&mut body, &mut said)).await;
    connection.shutdown().await;
    Ok(Answer {
        status: head.status.as_u16(),
        retry_after: requested_delay(&head.headers),
        excerpt: one_line(&secrets(&post.url).mask(&String::from_utf8_lossy(&said)), Answer::LONGEST),
    })
}

/// A response whose headers were received, and the task that drives its connection.
struct Exchanged {
    response: Response<Incoming>,
    connection: JoinSet<()>,
}

async fn exchange(outbound: &Outbound, post: &Post, host: &str) -> Result<Exchanged, SendError> {
    let request = request(post)?;
    let way = outbound.guard.way(host, post.url.port(), RequiredPermission::Permitted).await?;
    let stream = way.connect().await?;
    let stream: Box<dyn Stream> = match post.url.is_encrypted() {
        true => outbound.tls.encrypt(host, stream).await?,
        false => Box::new(stream),
    };
    let broken = |error: hyper::Error| SendError::Unreachable(error_text(host, &error));
    let (mut sender, driven) =
        http1::Builder::new().max_buf_size(HEADERS).handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let mut connection = JoinSet::new();
    connection.spawn(async move {
        // Errors are returned by the request that waits for the response.
        let _ended = driven.await;
    });
    let response = sender.send_request(request).await.map_err(broken)?;
    Ok(Exchanged { response, connection })
}

fn request(post: &Post) -> Result<Request<String>, SendError> {
    let unsendable = |what: &str| SendError::Unreachable(format!("The {what} cannot be sent by HTTP"));
    let mut request = Request::post(target(&post.url).ok_or_else(|| unsendable("address"))?)
        .body(post.body.clone())
        .map_err(|_invalid| unsendable("address"))?;
    let headers = request.headers_mut();
    for (name, value) in &post.headers {
        let value = HeaderValue::from_str(value).map_err(|_invalid| unsendable("header"))?;
        let name = HeaderName::try_from(*name).map_err(|_invalid| unsendable("header"))?;
        headers.insert(name, value);
    }
    let authority = HeaderValue::from_str(&authority(&post.url)).map_err(|_invalid| unsendable("address"))?;
    headers.insert(header::HOST, authority);
    headers.insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    Ok(request)
}

/// The path and the query.
fn target(url: &WebhookUrl) -> Option<String> {
    let url = Url::parse(url.expose()).ok()?;
    Some(match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    })
}

/// The host, and the port unless it is the default.
fn authority(url: &WebhookUrl) -> String {
    let usual = if url.is_encrypted() { 443 } else { 80 };
    match url.port() {
        port if port == usual => url.host().to_string(),
        port => format!("{}:{port}", url.host()),
    }
}

/// Returns the secret parts of a URL, which the receiver may echo.
fn secrets(url: &WebhookUrl) -> Masker {
    let target = target(url).unwrap_or_default();
    let long = |part: &&str| part.len() >= LONG;
    let parts = target.split(['/', '?', '&', '=']).filter(long);
    let whole = [url.expose(), &target].into_iter().filter(|text| text.len() >= LONG);
    Masker::new(whole.chain(parts))
}

fn requested_delay(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(header::RETRY_AFTER)?.to_str().ok()?;
    retry_after(value, SystemTime::now())
}

/// Reads at most [`MOST`] bytes, and ignores the rest.
async fn read_beginning<B>(body: &mut B, said: &mut Vec<u8>)
where
    B: Body<Data = Bytes> + Unpin,
{
    while said.len() < MOST
        && let Some(Ok(frame)) = body.frame().await
    {
        let Ok(data) = frame.into_data() else { continue };
        said.extend_from_slice(&data[..data.len().min(MOST - said.len())]);
    }
}

fn error_text(host: &str, error: &hyper::Error) -> String {
    if error.is_parse_too_large() {
        format!("{host} answers with too many headers")
    } else if error.is_parse() {
        format!("{host} does not answer in HTTP")
    } else if error.is_incomplete_message() {
        format!("{host} closed the connection before it answered")
    } else {
        format!("The connection to {host} was lost before it answered")
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;

    use super::*;

    fn post_to(url: &str) -> Post {
        Post {
            url: url.to_owned().try_into().unwrap(),
            headers: vec![("webhook-id", "msg_1".to_owned())],
            body: "{}".to_owned(),
        }
    }

    #[test]
    fn a_request_names_its_host_and_its_path() {
        for (url, host, target) in [
            ("http://example.com", "example.com", "/"),
            ("https://example.com:443/a/b?c=d#e", "example.com", "/a/b?c=d"),
            ("https://example.com:8443/", "example.com:8443", "/"),
            ("http://example.com:443/", "example.com:443", "/"),
            ("http://[2606:4700::1]:8080/x", "[2606:4700::1]:8080", "/x"),
            ("https://müller.example/ü?q=ü", "xn--mller-kva.example", "/%C3%BC?q=%C3%BC"),
            ("https://example.com/a|b[c]^{d}\"`?|[]^{}\"`'\\", "example.com", ""),
        ] {
            let request = request(&post_to(url)).expect(url);
            assert_eq!(request.headers()["host"], host, "{url}");
            let asked = request.uri().to_string();
            assert!(target.is_empty() || asked == target, "{url}: {asked}");
        }
    }

    #[test]
    fn what_is_given_does_not_replace_what_is_fixed() {
        let mut post = post_to("https://example.com/");
        post.headers.push(("user-agent", "other".to_owned()));
        let request = request(&post).unwrap();
        assert_eq!(request.headers()["user-agent"], USER_AGENT);
        assert_eq!(request.headers()["webhook-id"], "msg_1");
        post.headers = vec![("webhook-id", "a\r\nb: c".to_owned())];
        assert!(super::request(&post).is_err());
    }

    #[test]
    fn what_a_receiver_repeats_of_the_address_is_hidden() {
        let url = "https://hooks.example.com/services/T0000000/aVeryLongSecretPart?key=anotherLongSecretPart";
        let secrets = secrets(&post_to(url).url);
        for (said, shown) in [
            (url, "[secret]"),
            ("Cannot POST /services/T0000000/aVeryLongSecretPart", "Cannot POST /services/T0000000/[secret]"),
            ("no aVeryLongSecretPart here", "no [secret] here"),
            ("bad key: anotherLongSecretPart.", "bad key: [secret]."),
            ("no services", "no services"),
        ] {
            assert_eq!(secrets.mask(said), shown);
        }
    }

    #[tokio::test]
    async fn no_more_than_the_limit_is_kept() {
        for (length, kept) in [(0, 0), (MOST - 1, MOST - 1), (MOST, MOST), (MOST + 1, MOST)] {
            let mut said = Vec::new();
            read_beginning(&mut Full::new(Bytes::from(vec![b'x'; length])), &mut said).await;
            assert_eq!(said.len(), kept);
        }
    }
}
