//! Thousands of messages, while the receiver fails, hangs and crashes, and the server is killed: each is
//! delivered or dead in the end, and identical at each attempt.

use std::{
    collections::BTreeMap,
    fs,
    sync::{
        RwLock,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use launchway_testkit::{
    client::Client,
    external::{Reply, TestReceiver},
    server::TestServer,
};
use serde_json::json;

use super::{MEMBERS, Start, add_channel, allowing, ledger::Ledger, signatures::new_secret, text};
use crate::wait::until_within;

/// The number of messages on each database.
const ON_SQLITE: usize = 10_000;
const ON_POSTGRES: usize = 1_000;
/// The number of crashes of the receiver, and of the server.
const DEATHS: usize = 10;
/// Each has a channel, and each channel has at most two deliveries in flight.
const ORGANIZATIONS: usize = 16;
const TIMEOUT: Duration = Duration::from_secs(500);

#[test]
fn every_message_is_delivered_or_dead_on_sqlite() {
    every_message_is_delivered_or_dead(TestServer::configured, ON_SQLITE);
}

#[test]
fn every_message_is_delivered_or_dead_on_postgres() {
    every_message_is_delivered_or_dead(TestServer::configured_on_postgres, ON_POSTGRES);
}

fn every_message_is_delivered_or_dead(start: Start, count: usize) {
    let begun = Instant::now();
    // Of twenty, one hangs and six fail.
    let receiver = TestReceiver::answering(|number, _| match number % 20 {
        7 => Reply::Silence,
        1 | 4 | 9 | 12 | 15 | 18 => Reply::Status(503),
        _ => Reply::Status(204),
    });
    let allowed = allowing(&receiver);
    let mut server = start(&[
        ("LAUNCHWAY_OUTBOUND_ALLOW", &allowed),
        ("LAUNCHWAY_NOTIFICATION_RETRIES", "200ms,400ms,800ms,1s,1s"),
        ("LAUNCHWAY_NOTIFICATION_TIMEOUT", "500ms"),
        ("LAUNCHWAY_LOG", "error"),
    ]);
    let tenants = Tenants::new(&server, &receiver);
    let mut work = Work::default();
    let shares = (0..ORGANIZATIONS).map(|number| (count + number) / ORGANIZATIONS);
    thread::scope(|scope| {
        for (home, share) in tenants.homes.iter().zip(shares) {
            let tenants = &tenants;
            scope.spawn(move || tenants.make(home, share));
        }
        for step in 1..=2 * DEATHS {
            let enough = step * count / (2 * DEATHS + 2);
            until_within(TIMEOUT, "enough messages", || (receiver.taken() >= enough).then_some(()));
            if step % 2 == 0 {
                receiver.die();
                thread::sleep(Duration::from_millis(300));
                receiver.come_back();
            } else {
                work.count(&server);
                server.kill();
                server.restart();
                server.url().clone_into(&mut tenants.url.write().unwrap());
            }
        }
    });
    let made = tenants.made.load(Ordering::SeqCst);
    assert_eq!(made, count);
    let open = "SELECT CAST(COUNT(*) AS TEXT) AS value FROM deliveries WHERE state IN ('pending', 'sending')";
    until_within(TIMEOUT, "the end of all messages", || {
        thread::sleep(Duration::from_millis(100));
        (server.query(open) == ["0"]).then_some(())
    });
    work.count(&server);
    server.kill();

    let mut ledger = Ledger::new(&server, made, receiver.messages());
    ledger.secrets = tenants.homes.iter().map(|home| (home.path.clone(), home.secret.clone())).collect();
    work.report(&server, &ledger, begun.elapsed());
    assert_eq!(ledger.differences(), Vec::<String>::new());
    // The faster the machine, the more attempts of a message fall into one outage.
    assert!(ledger.delivered.len() > count / 2, "{} were delivered", ledger.delivered.len());
    would_notice(ledger);
}

/// The same comparison detects differences, if there are some.
fn would_notice(mut ledger: Ledger) {
    let one = ledger.delivered.pop_first().unwrap();
    let differences = ledger.differences();
    assert!(differences.iter().any(|one| one.contains("delivered and")), "{differences:?}");
    assert!(
        differences.iter().any(|line| line.contains(&one) && line.contains("nobody knows of it")),
        "{differences:?}"
    );
    ledger.delivered.insert(one.clone());

    let index = ledger.received.iter().position(|message| message.is_taken).unwrap();
    let message = ledger.received[index].clone();
    ledger.received[index].request.body = message.request.body.replacen('a', "b", 1);
    let differences = ledger.differences();
    assert!(differences.iter().any(|one| one.contains("is not signed")), "{differences:?}");
    ledger.received[index] = message;

    ledger.received.retain(|message| message.request.header("webhook-id") != Some(&one));
    assert_eq!(ledger.differences(), [format!("{one} is lost: nobody took it")]);
}

/// An organization, with a receiver and a user who is added and removed.
struct Home {
    client: Client,
    email: String,
    person: String,
    path: String,
    secret: String,
}

struct Tenants {
    homes: Vec<Home>,
    /// The current URL of the server.
    url: RwLock<String>,
    /// The number of changes, acknowledged or not.
    made: AtomicUsize,
}

impl Tenants {
    fn new(server: &TestServer, receiver: &TestReceiver) -> Self {
        let admin = server.admin();
        let home = |number: usize| {
            let made = admin.post("/api/v1/organizations", &json!({"name": format!("Home {number}")}));
            let client = admin.with_header("x-organization-id", &text(&made.success()["id"]));
            let email = format!("person{number}@example.com");
            let person = super::add(&client, &email);
            super::remove(&client, &person);
            add_channel(&client, "generic", &format!("{}/{number}", receiver.url()));
            let secret = new_secret(&client);
            Home { client, email, person, path: format!("/hook/{number}"), secret }
        };
        let homes = (0..ORGANIZATIONS).map(home).collect();
        Self { homes, url: RwLock::new(server.url().to_owned()), made: AtomicUsize::new(0) }
    }

    /// Adds and removes the user, `count` times.
    fn make(&self, home: &Home, count: usize) {
        for number in 0..count {
            let becomes_member = number % 2 == 0;
            until_within(TIMEOUT, "a change", || self.change(home, becomes_member).then_some(()));
            self.made.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Returns whether the membership changed. Without a response, it is read.
    fn change(&self, home: &Home, becomes_member: bool) -> bool {
        let client = home.client.at(&self.url.read().unwrap());
        let (method, body) = match becomes_member {
            true => ("POST", json!({"email": home.email, "role": "viewer"})),
            false => ("DELETE", json!({"user_id": home.person})),
        };
        let answer = client.try_send(method, MEMBERS, Some(&body.to_string()));
        if answer.is_ok_and(|answer| answer.status == 200) {
            return true;
        }
        let client = home.client.at(&self.url.read().unwrap());
        let Ok(members) = client.try_send("GET", MEMBERS, None) else { return false };
        members.status == 200 && members.text.contains(&home.email) == becomes_member
    }
}

/// The processor time of the servers, one after the other.
#[derive(Default)]
struct Work(Duration);

impl Work {
    /// Adds the processor time of the running server.
    fn count(&mut self, server: &TestServer) {
        self.0 += processor_time(&server.process_id().to_string());
    }

    #[expect(clippy::print_stderr, reason = "figures are what the test is for, besides")]
    fn report(&self, server: &TestServer, ledger: &Ledger, took: Duration) {
        let number = |query: &str| server.query(query).concat();
        let attempts = number("SELECT CAST(COUNT(*) AS TEXT) AS value FROM delivery_attempts");
        let claims = number("SELECT CAST(SUM(attempt) AS TEXT) AS value FROM deliveries");
        let taken = ledger.received.iter().filter(|message| message.is_taken).count();
        let distinct = ledger.taken();
        let mut per_id: BTreeMap<&str, usize> = BTreeMap::new();
        for message in &ledger.received {
            *per_id.entry(message.request.header("webhook-id").unwrap_or_default()).or_default() += 1;
        }
        eprintln!(
            "{} made: {} delivered, {} dead; {claims} attempts begun, {attempts} with an outcome; {} requests \
             came, {taken} were taken, of {} messages ({} of them again); the most for one message: {}; took \
             {took:.1?}, of which the servers used {:.1?} and the test {:.1?} of a processor",
            ledger.made,
            ledger.delivered.len(),
            ledger.dead.len(),
            ledger.received.len(),
            distinct.len(),
            taken - distinct.len(),
            per_id.values().max().copied().unwrap_or_default(),
            self.0,
            processor_time("self"),
        );
    }
}

/// Returns the processor time of a process.
fn processor_time(process: &str) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    // The 14th and the 15th of all fields, in hundredths of a second.
    let ticks: u64 = fields.split(' ').skip(11).take(2).map(|field| field.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 10)
}
