//! Parses sizes, durations and ports of compose files.

use std::time::Duration;

/// The most ports in one range.
const WIDEST_RANGE: u16 = 100;

/// A size in bytes: `64m`, `1.5gb`, `1024`.
pub(super) fn size(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor: u64 = match text.get(digits.len()..)? {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        _ => return None,
    };
    match digits.parse::<u64>() {
        Ok(number) => number.checked_mul(factor),
        Err(_) => {
            let number: f64 = digits.parse().ok()?;
            let bytes = number * Duration::from_secs(factor).as_secs_f64();
            // Through a duration, which rejects numbers that are no valid size.
            Some(Duration::try_from_secs_f64(bytes).ok()?.as_secs())
        }
    }
}

/// A duration: `10s`, `1m30s`, `500ms`.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut total = Duration::ZERO;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').filter(|end| *end > 0)?;
        let (number, behind) = rest.split_at(digits);
        let letters = behind.find(|c: char| c.is_ascii_digit()).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(letters);
        let seconds = match unit {
            "us" => 0.000_001,
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        let part = Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()?;
        total = total.checked_add(part)?;
        rest = behind;
    }
    Some(total)
}

/// The TCP ports of a container in `[[address:]port:]port[/protocol]`, each of which may be a range.
pub(super) fn container_ports(text: &str) -> Option<Vec<u16>> {
    let (ports, protocol) = text.trim().split_once('/').unwrap_or((text.trim(), "tcp"));
    let ports = ports.rsplit(':').next()?;
    let (first, last) = ports.split_once('-').unwrap_or((ports, ports));
    let (first, last): (u16, u16) = (first.parse().ok()?, last.parse().ok()?);
    if first == 0 || last < first || last - first >= WIDEST_RANGE {
        return None;
    }
    match protocol {
        "tcp" => Some((first..=last).collect()),
        "udp" | "sctp" => Some(Vec::new()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in
            [("1024", 1024), ("64m", 64 << 20), ("64MB", 64 << 20), ("1.5g", 3 << 29), ("5b", 5), ("2 ", 2)]
        {
            assert_eq!(size(text), Some(bytes), "{text}");
        }
        for text in ["", "m", "-1", "1t", "1e30g", "99999999999999999999g", "NaN", "inf"] {
            assert_eq!(size(text), None, "{text}");
        }
    }

    #[test]
    fn durations_have_units() {
        for (text, milliseconds) in [("10s", 10_000), ("1m30s", 90_000), ("500ms", 500), ("1.5s", 1500)] {
            assert_eq!(duration(text), Some(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in ["", "10", "s", "1x", "-1s", "1..2s", "1s2"] {
            assert_eq!(duration(text), None, "{text}");
        }
    }

    #[test]
    fn only_the_containers_side_of_a_port_counts() {
        for (text, ports) in [
            ("80", vec![80]),
            ("8080:80", vec![80]),
            ("127.0.0.1:8080:80/tcp", vec![80]),
            ("[::1]:8080:80", vec![80]),
            ("3000-3001:4000-4001", vec![4000, 4001]),
            ("53:53/udp", vec![]),
        ] {
            assert_eq!(container_ports(text), Some(ports), "{text}");
        }
        for text in ["", "x", "0", "80/x", "2-1", "1-60000", "99999", "80:"] {
            assert_eq!(container_ports(text), None, "{text}");
        }
    }
}
