//! One attempt: a request sent, its answer read to the end.

use super::client::Client;
use super::{Http, named};
use crate::trouble::{Kind, Trouble};
use crate::wire::{Answer, Header, Phase, Reading, Wire};
use crate::{Ask, Heard};
use futures_util::future::{Either, select};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use std::error::Error;
use std::ops::Deref;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use trace::{Clock, Millis, Usage};

/// How long the head of an answer may take, and each piece of its stream before the first word: a server of one's own may send
/// the head at once and then work through the prompt in silence.
const FIRST_WORD: Duration = Duration::from_secs(10 * 60);
/// How long the next piece of a stream may take from then on. Whatever comes counts, also a comment or an event without
/// words: it is how a server says that its model still thinks.
const NEXT_PIECE: Duration = Duration::from_secs(5 * 60);
/// How long the whole body of an error may take.
const ERROR_TIME: Duration = Duration::from_secs(2 * 60);
/// How long the usage may take after the model has stopped.
const USAGE: Duration = Duration::from_secs(10);
/// How long the body may take to end after its last event, so that the connection can be used again.
const END: Duration = Duration::from_secs(1);
/// The most bytes of an error's body that are read.
const ERROR_BODY: usize = 64 << 10;

/// What came of an attempt.
pub(super) struct Attempted {
    pub status: Option<u16>,
    pub request_id: Option<String>,
    pub first_token_ms: Option<Millis>,
    pub usage: Usage,
    pub estimated: bool,
    /// Whether the answer came event by event.
    pub streamed: bool,
    pub result: Result<Answer, Trouble>,
}

impl Attempted {
    /// One that was refused before its first byte, and so cost nothing.
    fn refused(status: Option<u16>, request_id: Option<String>, trouble: Trouble) -> Attempted {
        Attempted {
            status,
            request_id,
            first_token_ms: None,
            usage: Usage::default(),
            estimated: false,
            streamed: false,
            result: Err(trouble),
        }
    }
}

impl Http {
    /// Makes one attempt. `deadline` is the end of the run's active time, in the clock's elapsed milliseconds.
    pub(super) async fn attempt(&self, ask: &Ask<'_>, deadline: Option<Millis>) -> Attempted {
        let wire = Wire::of(&self.spec);
        let patience = Patience { clock: ask.clock, deadline };
        let (client, request) = match self.request(wire, ask.body) {
            Ok(request) => request,
            Err(words) => return Attempted::refused(None, None, Trouble::new(Kind::Rejected, words)),
        };
        let begun = ask.clock.elapsed();
        let mut response =
            match patience.within(FIRST_WORD, client.send(request), "the answer did not begin within 10 minutes").await {
                Ok(Ok(response)) => response,
                Ok(Err(error)) => {
                    // A request that was sent may be billed, whatever became of its answer.
                    let (usage, estimated) = if error.is_connect() { (Usage::default(), false) } else { (input(ask), true) };
                    return Attempted { usage, estimated, ..Attempted::refused(None, None, unanswered(&error)) };
                }
                Err(trouble) => {
                    return Attempted { usage: input(ask), estimated: true, ..Attempted::refused(None, None, trouble) };
                }
            };
        self.met.store(true, Ordering::Relaxed);
        let status = response.status().as_u16();
        let request_id = header(response.headers(), wire.request_id()).and_then(named);
        if status != 200 {
            let trouble = refused(wire, &mut response, status, &patience).await;
            return Attempted::refused(Some(status), request_id, trouble);
        }
        let first = AtomicU64::new(u64::MAX);
        let heard = |word: Heard<'_>| {
            first.fetch_min(ask.clock.elapsed().saturating_sub(begun), Ordering::Relaxed);
            (ask.heard)(word);
        };
        let mut reading = Reading::new(wire);
        let whole = self.access.retry.reply;
        let late = format!("the reply had no end after {} (reply_time in the configuration)", in_words(whole));
        let read = read(&mut response, &mut reading, &patience, &heard);
        let broken = patience.within(whole, read, &late).await.and_then(|read| read).err();
        let heard_tokens = (reading.heard_bytes() as u64).div_ceil(3);
        let streamed = reading.is_stream();
        let time_over = broken.as_ref().is_some_and(|trouble| trouble.kind == Kind::TimeOver);
        // What broke is a better reason than the missing end, but a reply that has its end is whole all the same.
        let (result, usage) = reading.finish(&heard);
        let result = match (result, broken) {
            (Err(trouble), Some(broken)) if time_over || trouble.kind == Kind::Passing => Err(broken),
            (result, _) => result,
        };
        Attempted {
            status: Some(status),
            request_id,
            first_token_ms: Some(first.into_inner()).filter(|ms| *ms != u64::MAX),
            usage: usage.unwrap_or(Usage { output: heard_tokens, ..input(ask) }),
            estimated: usage.is_none(),
            streamed,
            result,
        }
    }

    fn request(&self, wire: Wire, body: &str) -> Result<(&Client, reqwest::RequestBuilder), String> {
        let url = reqwest::Url::parse(&self.url()).map_err(|error| format!("the base URL is not one: {error}"))?;
        let client = self.client.get(&url)?;
        let mut request = client.post(url).header(CONTENT_TYPE, "application/json").header(ACCEPT, "text/event-stream");
        for Header { name, value, secret } in wire.headers(self.access.key.as_deref(), self.access.form) {
            let value = HeaderValue::from_str(&value);
            let mut value = value.map_err(|_| "the key holds characters that no key has (a line end?)".to_owned())?;
            value.set_sensitive(secret);
            request = request.header(name, value);
        }
        Ok((client, request.body(body.to_owned())))
    }
}

/// How long things may take.
struct Patience<'a> {
    clock: &'a dyn Clock,
    deadline: Option<Millis>,
}

impl Patience<'_> {
    /// What `work` gives, unless `limit` or the run's time is over first; `late` says what the former means.
    async fn within<T>(&self, limit: Duration, work: impl Future<Output = T>, late: &str) -> Result<T, Trouble> {
        let left = self.deadline.map(|end| Duration::from_millis(end.saturating_sub(self.clock.elapsed())));
        let length = left.map_or(limit, |left| left.min(limit));
        match select(pin!(work), self.clock.limit(length)).await {
            Either::Left((value, _)) => Ok(value),
            Either::Right(_) if left.is_some_and(|left| left < limit) => {
                Err(Trouble::new(Kind::TimeOver, "the run's active time was over"))
            }
            Either::Right(_) => Err(Trouble::new(Kind::Passing, late)),
        }
    }
}

/// Reads the body of a reply to its end, or to what broke it.
async fn read(
    response: &mut reqwest::Response,
    reading: &mut Reading,
    patience: &Patience<'_>,
    heard: &(dyn Fn(Heard<'_>) + Sync),
) -> Result<(), Trouble> {
    let broke = |error: reqwest::Error| Trouble::new(Kind::Passing, format!("the stream broke: {}", cause(&error)));
    while reading.phase() == Phase::Open {
        let limit = if reading.heard_bytes() == 0 { FIRST_WORD } else { NEXT_PIECE };
        let late = format!("the stream stood still for {}", in_words(limit));
        match patience.within(limit, piece(response), &late).await?.map_err(broke)? {
            Some(bytes) => reading.push(&bytes, heard),
            None => return Ok(()),
        }
    }
    // From here on the time is for all that comes: a server may go on for ever saying that it is alive.
    let usage = async {
        while reading.phase() == Phase::Stopped {
            match piece(response).await.map_err(broke)? {
                Some(bytes) => reading.push(&bytes, heard),
                None => break,
            }
        }
        Ok(())
    };
    patience.within(USAGE, usage, "the usage did not come").await??;
    let end = async {
        while piece(response).await.map_err(broke)?.is_some() {}
        Ok(())
    };
    patience.within(END, end, "the body did not end").await?
}

/// The next piece of a body. Between two of them others have their turn, so that a server that sends faster than we read keeps
/// nobody waiting: neither a limit of time nor the person who wants to stop.
async fn piece(response: &mut reqwest::Response) -> reqwest::Result<Option<impl Deref<Target = [u8]>>> {
    tokio::task::yield_now().await;
    response.chunk().await
}

/// What an answer with another status than 200 means.
async fn refused(wire: Wire, response: &mut reqwest::Response, status: u16, patience: &Patience<'_>) -> Trouble {
    if let Some(place) = response.headers().get(LOCATION).filter(|_| (300..400).contains(&status)) {
        let host =
            place.to_str().ok().and_then(|place| response.url().join(place).ok()).map(|url| url.origin().ascii_serialization());
        let host = host.unwrap_or_else(|| "another place".to_owned());
        return Trouble::new(
            Kind::Rejected,
            format!("redirected to {host}, which is not followed: put the right address in the base URL"),
        );
    }
    let told = wire.told(|name| header(response.headers(), name), patience.clock.now());
    let mut body = Vec::new();
    // The time is for all of it: a server may go on for ever, a byte at a time.
    let whole = async {
        while let Ok(Some(bytes)) = piece(response).await {
            body.extend_from_slice(&bytes);
            if body.len() >= ERROR_BODY {
                break;
            }
        }
    };
    let is_over = patience.within(ERROR_TIME, whole, "").await.is_err_and(|late| late.kind == Kind::TimeOver);
    // What came until then says something, whole or not.
    let trouble = wire.refusal(status, told, &body);
    match is_over {
        true => Trouble::new(Kind::TimeOver, format!("the run's active time was over in the midst of it: {}", trouble.message)),
        false => trouble,
    }
}

/// What it means that a request could not be sent or got no answer.
fn unanswered(error: &reqwest::Error) -> Trouble {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(rustls::Error::InvalidCertificate(why)) = error.downcast_ref() {
            return Trouble::new(Kind::Rejected, format!("the server's certificate is not trusted on this machine ({why:?})"));
        }
        // An `io::Error` passes itself over: its source is that of what it holds.
        next = match error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
            Some(held) => Some(held),
            None => error.source(),
        };
    }
    Trouble::new(Kind::Unreachable, cause(error))
}

/// The innermost reason, which is the one that says something; without the address, which may hold a key.
fn cause(error: &reqwest::Error) -> String {
    let mut last: &dyn Error = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// A length of time in words, in the largest unit of which it is a whole number.
fn in_words(length: Duration) -> String {
    let counted = |count: u128, unit: &str| format!("{count} {unit}{}", if count == 1 { "" } else { "s" });
    match length.as_millis() {
        millis if millis % 1_000 != 0 => counted(millis, "millisecond"),
        millis if millis % 60_000 != 0 => counted(millis / 1_000, "second"),
        millis => counted(millis / 60_000, "minute"),
    }
}

/// The usage of a request of which nothing came back.
fn input(ask: &Ask<'_>) -> Usage {
    Usage { input: ask.input(), ..Usage::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_of_time_is_told_in_the_unit_that_fits() {
        let told =
            [1, 999, 1_000, 1_500, 59_000, 60_000, 90_000, 3_600_000].map(|millis| in_words(Duration::from_millis(millis)));
        let words = "1 millisecond, 999 milliseconds, 1 second, 1500 milliseconds, 59 seconds, 1 minute, 90 seconds, 60 minutes";
        assert_eq!(told.join(", "), words);
    }
}
