// SPDX-License-Identifier: GPL-2.0

//! Quantities as people read them.

use std::time::Duration;

/// Binary units, from bytes up.
const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];

/// Returns a number of bytes in the largest unit that it fills, with one digit behind the point
/// where it is not whole: `16 MiB`, `1.5 KiB`, `100 B`.
pub(crate) fn bytes(bytes: u64) -> String {
    let mut unit = 0;
    while unit + 1 < UNITS.len() && bytes >> (10 * (unit + 1)) != 0 {
        unit += 1;
    }
    let shift = 10 * unit;
    let whole = bytes >> shift;
    let rest = bytes - (whole << shift);
    if rest == 0 {
        return format!("{whole} {}", UNITS[unit]);
    }
    // Rounded to the nearest tenth; 9.96 becomes 10.0.
    let tenths = (u128::from(bytes) * 10 + (1 << (shift - 1))) >> shift;
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

/// Returns a number with its digits in groups of three: `786 432`.
pub(crate) fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut grouped = String::with_capacity(digits.len() * 4 / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position != 0 && (digits.len() - position) % 3 == 0 {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    grouped
}

/// Returns a number and its noun, in the plural where it is not one.
pub(crate) fn counted(number: u64, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", count(number))
}

/// Returns a time in seconds or milliseconds: `2.41 s`, `35 ms`.
pub(crate) fn time(time: Duration) -> String {
    match time.as_millis() {
        0..1000 => format!("{} ms", time.as_millis()),
        _ => format!("{:.2} s", time.as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_use_the_largest_unit_that_they_fill() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(16 << 20), "16 MiB");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes((10 << 20) - 1), "10.0 MiB");
        assert_eq!(bytes(256 << 40), "256 TiB");
        assert_eq!(bytes(u64::MAX), "16777216.0 TiB");
    }

    #[test]
    fn counts_are_grouped_by_three_digits() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1000), "1 000");
        assert_eq!(count(12_345_678), "12 345 678");
    }

    #[test]
    fn nouns_are_in_the_plural_unless_there_is_one() {
        assert_eq!(counted(1, "texture"), "1 texture");
        assert_eq!(counted(0, "texture"), "0 textures");
    }

    #[test]
    fn times_below_a_second_are_milliseconds() {
        assert_eq!(time(Duration::from_millis(999)), "999 ms");
        assert_eq!(time(Duration::from_millis(2413)), "2.41 s");
    }
}
