use super::*;

fn range(subnet: &str) -> AddressRange {
    AddressRange::divide(subnet.parse().unwrap())
}

fn ip(text: &str) -> Ipv4Addr {
    text.parse().unwrap()
}

fn set(texts: &[&str]) -> HashSet<Ipv4Addr> {
    texts.iter().map(|text| ip(text)).collect()
}

fn taken(address: &str, created: i64) -> TakenAddress {
    TakenAddress { address: ip(address), created }
}

#[test]
fn the_engine_chooses_from_the_top_quarter_of_a_network() {
    let divided = range("10.0.0.0/24");
    assert_eq!(divided.engine_range, Some("10.0.0.192/26".parse().unwrap()));
    assert_eq!(divided.gateway, Some(ip("10.0.0.1")));
    assert_eq!(range("10.0.0.64/26").engine_range, Some("10.0.0.112/28".parse().unwrap()));
    assert_eq!(range("10.0.0.0/29").engine_range, None, "nothing would be left");
}

#[test]
fn the_address_after_the_last_one_is_chosen() {
    let range = range("10.0.0.0/24");
    for (last, taken, chosen) in [
        (None, set(&[]), "10.0.0.2"),
        (None, set(&["10.0.0.2", "10.0.0.4"]), "10.0.0.3"),
        (Some("10.0.0.7"), set(&[]), "10.0.0.8"),
        (Some("10.0.0.7"), set(&["10.0.0.8"]), "10.0.0.9"),
        // The engine's own part begins after our last one.
        (Some("10.0.0.191"), set(&["10.0.0.2"]), "10.0.0.3"),
        (Some("10.0.0.250"), set(&[]), "10.0.0.2"),
    ] {
        assert_eq!(range.choose(&taken, last.map(ip)), Some(ip(chosen)), "{last:?}");
    }
}

#[test]
fn a_network_has_190_addresses_and_then_none() {
    let range = range("10.0.0.0/24");
    let (mut taken, mut last) = (HashSet::new(), None);
    while let Some(address) = range.choose(&taken, last) {
        assert!(taken.insert(address));
        last = Some(address);
    }
    assert_eq!(taken.len(), 190);
    assert!(!taken.contains(&ip("10.0.0.1")) && !taken.contains(&ip("10.0.0.192")));
}

#[test]
fn an_undivided_network_is_used_from_its_middle() {
    let undivided = AddressRange { engine_range: None, gateway: None, ..range("10.0.0.0/24") };
    assert_eq!(undivided.choose(&HashSet::new(), None), Some(ip("10.0.0.128")));
    assert_eq!(undivided.choose(&HashSet::new(), Some(ip("10.0.0.254"))), Some(ip("10.0.0.128")));
    let upper = (128..=254).map(|byte| Ipv4Addr::new(10, 0, 0, byte)).collect();
    assert_eq!(undivided.choose(&upper, Some(ip("10.0.0.254"))), Some(ip("10.0.0.2")));
    let small = AddressRange { engine_range: None, ..range("10.0.0.0/30") };
    assert_eq!(small.choose(&HashSet::new(), None), Some(ip("10.0.0.2")));
    assert_eq!(small.choose(&set(&["10.0.0.2"]), None), None);
}

#[test]
fn no_address_is_assigned_twice() {
    let (book, range) = (AddressBook::default(), range("10.0.0.0/28"));
    let asked = Instant::now();
    let assign = || book.assign("n", range, &[taken("10.0.0.3", 1)], &["10.0.0.5".parse().unwrap()], asked);
    let assigned: Vec<Assignment> = std::iter::from_fn(assign).collect();
    let mut addresses: Vec<String> = assigned.iter().map(|one| one.address.to_string()).collect();
    addresses.sort();
    // Of ten that are ours one is taken and one is reserved; the first is the gateway's.
    let all = [2, 4, 6, 7, 8, 9, 10, 11].map(|byte| format!("10.0.0.{byte}"));
    let mut all = all.to_vec();
    all.sort();
    assert_eq!(addresses, all);
    drop(assigned);
    assert!(assign().is_none(), "a list from before does not show the new containers");
    let listed = book.assign("n", range, &[], &[], Instant::now()).unwrap();
    assert!(book.assign("other", range, &[], &[], asked).is_some());
    assert!(book.hold("n", listed.address).is_none());
    let address = listed.address;
    drop(listed);
    assert!(book.hold("n", address).is_some());
}

#[test]
fn the_newest_container_says_where_to_go_on() {
    let (book, range) = (AddressBook::default(), range("10.0.0.0/24"));
    let listed =
        [taken("10.0.0.90", 5), taken("10.0.0.20", 7), taken("10.0.0.19", 7), taken("172.17.0.9", 9)];
    let first = book.assign("n", range, &listed, &[], Instant::now()).unwrap();
    assert_eq!(first.address, ip("10.0.0.21"));
    let listed = [taken("10.0.0.100", 9)];
    let second = book.assign("n", range, &listed, &[], Instant::now()).unwrap();
    assert_eq!(second.address, ip("10.0.0.22"), "what this process assigned last counts before");
}
