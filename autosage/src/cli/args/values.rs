//! How the values of flags are read: rights, answers, lengths of time, ages, sizes and amounts.

use std::path::PathBuf;
use std::time::Duration;
use trace::NanoUsd;

/// A right beyond the workspace, as it is typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Right {
    /// `read=PATH`
    Read(PathBuf),
    /// `write=PATH`
    Write(PathBuf),
    /// `network`
    Network,
}

/// `read=PATH`, `write=PATH`, `network`.
pub fn right(text: &str) -> Result<Right, String> {
    match text.split_once('=') {
        None if text == "network" => Ok(Right::Network),
        Some(("read", path)) if !path.is_empty() => Ok(Right::Read(path.into())),
        Some(("write", path)) if !path.is_empty() => Ok(Right::Write(path.into())),
        _ => Err("expected read=PATH, write=PATH or network".to_owned()),
    }
}

/// `12=once`: the event that asks, and the answer.
pub fn answer(text: &str) -> Result<(u64, trace::Answer), String> {
    let wrong = || format!("`{text}` is no answer: expected such as 12=once, 12=run or 12=no");
    let (seq, answer) = text.split_once('=').ok_or_else(wrong)?;
    Ok((seq.parse().map_err(|_| wrong())?, answer.parse().map_err(|_| wrong())?))
}

/// `90s`, `30m`, `2h`, `500ms`; a bare number is seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a length of time: expected such as 90s, 30m or 2h");
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..split].parse().map_err(|_| wrong())?;
    let unit = match &text[split..] {
        "ms" => 1,
        "s" | "" => 1000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        _ => return Err(wrong()),
    };
    match number.checked_mul(unit) {
        Some(millis) if millis > 0 => Ok(Duration::from_millis(millis)),
        _ => Err(wrong()),
    }
}

/// As a length of time; days and weeks too.
pub fn age(text: &str) -> Result<Duration, String> {
    let unit = if text.ends_with('d') { 86_400 } else { 7 * 86_400 };
    let number = text.strip_suffix(['d', 'w']).and_then(|number| number.parse::<u64>().ok());
    match number.and_then(|number| number.checked_mul(unit)) {
        Some(seconds) => Ok(Duration::from_secs(seconds)),
        None => duration(text).map_err(|_| format!("`{text}` is not an age: expected such as 12h, 30d or 8w")),
    }
}

/// `500M`, `2G`; a bare number is bytes.
pub fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not a size: expected such as 500M or 2G");
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..split].parse().map_err(|_| wrong())?;
    let unit = match text[split..].trim_end_matches('B') {
        "" => 1,
        "k" | "K" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "T" => 1_000_000_000_000,
        _ => return Err(wrong()),
    };
    number.checked_mul(unit).ok_or_else(wrong)
}

/// Dollars with up to nine decimals.
pub fn usd(text: &str) -> Result<NanoUsd, String> {
    let wrong = || format!("`{text}` is not an amount of dollars: expected such as 0.50");
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || part.len() > 9 || !digits(whole) || !digits(part) {
        return Err(wrong());
    }
    format!("{whole}{part:0<9}").parse().map(NanoUsd).map_err(|_| wrong())
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_and_amounts_are_read_strictly() {
        assert_eq!(duration("90"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2h"), Ok(Duration::from_secs(7200)));
        assert!(["", "h", "1d", "-1s", "0", "1.5h", "99999999999999999999"].iter().all(|text| duration(text).is_err()));
        assert_eq!(usd("0.5"), Ok(NanoUsd(500_000_000)));
        assert_eq!(usd("12"), Ok(NanoUsd(12_000_000_000)));
        assert!(["", ".5", "1,5", "-1", "1e3", "0.0000000001"].iter().all(|text| usd(text).is_err()));
    }

    #[test]
    fn ages_and_sizes_are_read_strictly() {
        assert_eq!([age("30d"), age("8w"), age("12h")].map(|age| age.unwrap().as_secs()), [2_592_000, 4_838_400, 43_200]);
        assert!(["", "d", "1y", "-1d", "1.5d"].iter().all(|text| age(text).is_err()));
        assert_eq!([bytes("7"), bytes("500M"), bytes("2GB")].map(Result::unwrap), [7, 500_000_000, 2_000_000_000]);
        assert!(["", "G", "2X", "-1", "1.5G", "99999999999T"].iter().all(|text| bytes(text).is_err()));
    }

    #[test]
    fn answers_are_read_strictly() {
        assert_eq!(answer("12=run"), Ok((12, trace::Answer::Run)));
        assert!(["12", "12=", "12=yes", "x=once", "=no", ""].iter().all(|text| answer(text).is_err()));
    }

    #[test]
    fn rights_are_read_strictly() {
        assert_eq!(right("read=/a=b"), Ok(Right::Read("/a=b".into())));
        assert_eq!(right("network"), Ok(Right::Network));
        assert!(["read", "read=", "exec=/a", "network=on", ""].iter().all(|text| right(text).is_err()));
    }
}
