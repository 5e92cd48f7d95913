//! Whatever is sent as the id of a line to go on from: it is read or refused, and tells a place only in
//! the log that it is of.
#![no_main]

use chrono::DateTime;
use launchway_domain::{
    ids::ApplicationId,
    logs::{Level, LogLine, LogLineId},
};
use libfuzzer_sys::fuzz_target;
use uuid::Uuid;

/// As many lines as an id has room for.
const MOST: i64 = 1 << 40;

fuzz_target!(|input: (u128, i64, i64, &str)| {
    let (application, number, milliseconds, text) = input;
    let application = Uuid::from_u128(application);
    if let Ok(id) = text.parse::<LogLineId>() {
        assert_eq!(Uuid::from(id).to_string().parse(), Ok(id));
        tells_a_place(id, application.into());
    }
    let Some(at) = DateTime::from_timestamp_millis(milliseconds) else { return };
    let line = LogLine {
        number: number.rem_euclid(MOST),
        application_id: application.into(),
        deployment_id: Uuid::nil().into(),
        level: Level::Runtime,
        text: String::new(),
        at,
    };
    let id = Uuid::from(line.id());
    assert_eq!((id.get_version_num(), id.get_variant()), (7, uuid::Variant::RFC4122));
    for written in [id.to_string(), format!(" {}\n", id.simple()), id.urn().to_string().to_uppercase()] {
        if let Ok(read) = written.parse::<LogLineId>() {
            assert_eq!((read, read.number_in(line.application_id)), (line.id(), Some(line.number)));
        }
    }
    assert_eq!(id.to_string().parse(), Ok(line.id()));
    let other = Uuid::from_u128(application.as_u128() ^ 1);
    assert_eq!(line.id().number_in(other.into()), None);
});

fn tells_a_place(id: LogLineId, application: ApplicationId) {
    if let Some(number) = id.number_in(application) {
        assert!((0..MOST).contains(&number), "{number}");
    }
}
