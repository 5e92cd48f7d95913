use uuid::Uuid;

use super::*;
use crate::quotas::Resource;

const ADA: u128 = 1;
const GRACE: u128 = 2;

fn policy(range: &str, limit: u64) -> PortPolicy {
    PortPolicy { range: range.parse().unwrap(), quota: Quota { resource: Resource::ExtensionPorts, limit } }
}

fn record(organization: u128, extension: &str, container: &str, port: &str) -> PortRecord {
    let published = PublishedPort::try_from(port.to_owned()).unwrap();
    PortRecord {
        organization: Uuid::from_u128(organization).into(),
        extension: extension.parse().unwrap(),
        execution: Uuid::nil().into(),
        container: container.to_owned(),
        port: HostPort {
            host: published.host.unwrap(),
            container: published.container,
            is_udp: published.is_udp,
        },
    }
}

/// Returns a request of Ada's for ports of the container `db` of the extension `postgres`.
fn request(wanted: &[&str]) -> PortRequest {
    PortRequest {
        organization: Uuid::from_u128(ADA).into(),
        extension: "postgres".parse().unwrap(),
        execution: Uuid::nil().into(),
        wanted: wanted
            .iter()
            .map(|port| ("db".to_owned(), PublishedPort::try_from((*port).to_owned()).unwrap()))
            .collect(),
        published: BTreeSet::new(),
        unavailable: BTreeSet::new(),
    }
}

fn hosts(given: Result<Vec<PortRecord>, PortRefusal>) -> Result<Vec<u16>, PortRefusal> {
    Ok(given?.iter().map(|record| record.port.host.get()).collect())
}

#[test]
fn a_range_has_two_ends_and_no_privileged_port() {
    let range: PortRange = "20000-29999".parse().unwrap();
    for (port, is_inside) in [(19_999, false), (20_000, true), (29_999, true), (30_000, false)] {
        assert_eq!(range.contains(port), is_inside, "{port}");
    }
    assert_eq!(range.to_string(), "20000-29999");
    assert!("1024-1024".parse::<PortRange>().is_ok() && "1024-65535".parse::<PortRange>().is_ok());
    for raw in ["", "20000", "1023-2000", "0-65535", "3000-2000", "1024-65536", "a-b", "1024-"] {
        assert!(raw.parse::<PortRange>().is_err(), "{raw}");
    }
}

#[test]
fn a_port_outside_the_range_is_refused() {
    let policy = policy("20000-20009", 0);
    for port in ["443:443", "5432:5432", "19999:80", "20010:80"] {
        let refused = policy.allocate(&request(&[port]), &[]).unwrap_err();
        assert!(matches!(refused, PortRefusal::OutOfRange { .. }), "{port}: {refused}");
    }
    let refused = policy.allocate(&request(&["443:443"]), &[]).unwrap_err().to_string();
    assert!(refused.contains("the port 443 ") && refused.contains("20000-20009"), "{refused}");
    assert_eq!(hosts(policy.allocate(&request(&["20000:80", "20009:81"]), &[])), Ok(vec![20_000, 20_009]));
}

#[test]
fn a_port_that_is_published_already_stays_allowed() {
    let mut again = request(&["5432:5432"]);
    again.published.insert((5432, false));
    assert_eq!(hosts(policy("20000-20009", 0).allocate(&again, &[])), Ok(vec![5432]));
    let held = [record(ADA, "postgres", "db", "5432:5432")];
    assert_eq!(hosts(policy("20000-20009", 1).allocate(&request(&["5432:5432"]), &held)), Ok(vec![5432]));
}

#[test]
fn a_port_of_another_holder_is_refused() {
    let policy = policy("20000-20009", 0);
    for other in [record(GRACE, "postgres", "db", "20000:1"), record(ADA, "mariadb", "db", "20000:1")] {
        let refused = policy.allocate(&request(&["20000:80"]), std::slice::from_ref(&other));
        assert_eq!(refused, Err(PortRefusal::Taken(20_000)), "{other:?}");
        assert!(policy.allocate(&request(&["20000:80/udp"]), &[other]).is_ok(), "UDP is another port");
    }
    let twice = policy.allocate(&request(&["20000:80", "20000:81"]), &[]);
    assert_eq!(twice, Err(PortRefusal::Taken(20_000)));
}

#[test]
fn a_port_without_a_number_gets_the_first_that_is_free() {
    let policy = policy("20000-20003", 0);
    let held = [record(GRACE, "postgres", "db", "20000:5432")];
    let mut wanted = request(&["5432", "20001:80", "0:81"]);
    wanted.unavailable.insert(20_002);
    assert_eq!(policy.allocate(&wanted, &held), Err(PortRefusal::RangeFull(policy.range)));
    wanted.unavailable.clear();
    assert_eq!(hosts(policy.allocate(&wanted, &held)), Ok(vec![20_002, 20_001, 20_003]));
}

#[test]
fn a_container_keeps_the_port_that_was_assigned() {
    let held = [record(ADA, "postgres", "db", "20007:5432"), record(ADA, "postgres", "other", "20000:5432")];
    assert_eq!(hosts(policy("20000-20009", 2).allocate(&request(&["5432"]), &held)), Ok(vec![20_007]));
}

#[test]
fn an_organization_has_a_quota_of_ports() {
    let held = [
        record(ADA, "mariadb", "db", "20000:3306"),
        record(ADA, "postgres", "db", "20001:5432"),
        record(GRACE, "postgres", "db", "20002:5432"),
    ];
    let ask = |limit, wanted: &[&str]| policy("20000-20009", limit).allocate(&request(wanted), &held);
    assert!(ask(3, &["20001:5432", "0:80"]).is_ok());
    let Err(PortRefusal::Quota(exceeded)) = ask(3, &["20001:5432", "0:80", "0:81"]) else { panic!() };
    assert_eq!((exceeded.used, exceeded.wanted, exceeded.limit), (2, 2, 3));
    assert!(ask(1, &["20001:5432"]).is_ok(), "what exists stays");
    assert!(ask(0, &["80", "81", "82", "83"]).is_ok());
}

fn requests(steps: &[&[&str]]) -> Vec<PortRequest> {
    steps.iter().map(|wanted| request(wanted)).collect()
}

#[test]
fn the_steps_of_a_first_run_are_previewed_together() {
    let held = HeldPorts { records: Vec::new(), is_installed: false };
    let preview =
        |range: &str, limit, steps: &[&[&str]]| policy(range, limit).preview(&requests(steps), &held);
    assert_eq!(preview("20000-20001", 2, &[&["0:80"], &["20001:81"]]), Ok(()));
    // A step that ends with its container gives the port to the next one.
    assert_eq!(preview("20000-20001", 1, &[&["20001:80"], &["20001:80"]]), Ok(()));
    let refused = preview("20000-20001", 1, &[&["20000:80"], &["20001:81"]]);
    assert!(matches!(refused, Err(PortRefusal::Quota(_))), "{refused:?}");
    let refused = preview("20000-20001", 0, &[&["0:80", "0:81"], &["0:82"]]);
    assert!(matches!(refused, Err(PortRefusal::RangeFull(_))), "{refused:?}");
    let refused = preview("20000-20001", 0, &[&["443:80"]]);
    assert!(matches!(refused, Err(PortRefusal::OutOfRange { port: 443, .. })), "{refused:?}");
}

#[test]
fn an_installed_extension_is_refused_only_what_others_hold() {
    let foreign = vec![record(GRACE, "postgres", "db", "20000:80")];
    let preview = |wanted: &str, is_installed| {
        let held = HeldPorts { records: foreign.clone(), is_installed };
        policy("20000-20000", 1).preview(&requests(&[&[wanted]]), &held)
    };
    for wanted in ["443:80", "0:80"] {
        assert_eq!(preview(wanted, true), Ok(()), "{wanted}");
        assert!(preview(wanted, false).is_err(), "{wanted}");
    }
    for is_installed in [true, false] {
        assert_eq!(preview("20000:80", is_installed), Err(PortRefusal::Taken(20_000)));
    }
}

#[test]
fn a_range_is_divided_into_three_quarters_and_one() {
    for (range, first, last) in [
        ("10000-19999", "10000-17499", "17500-19999"),
        ("20000-20001", "20000-20000", "20001-20001"),
        ("20000-20000", "20000-20000", "20000-20000"),
    ] {
        let range: PortRange = range.parse().unwrap();
        assert_eq!(range.divided(), (first.parse().unwrap(), last.parse().unwrap()));
    }
}
