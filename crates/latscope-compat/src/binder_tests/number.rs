//! Numbers as C++'s streams and printf(3) write them, made by pure functions.

/// Writes a number with up to so many significant digits, as a stream does by default: `0.2`, `70302`, `9.1e-05`. NaN
/// and infinities become `null`, for readers of JSON.
pub fn general(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return "null".to_owned();
    }
    let (mantissa, exponent) = split_exponent(value, digits.max(1) - 1);
    if exponent < -4 || exponent >= digits as i32 {
        return format!("{}{}", trim_zeros(&mantissa), format_exponent(exponent));
    }
    trim_zeros(&format!("{value:.0$}", (digits as i32 - 1 - exponent) as usize)).to_owned()
}

/// Writes a number with all its digits, as `%.16e` does.
pub(crate) fn scientific(value: f64) -> String {
    let (mantissa, exponent) = split_exponent(value, 16);
    mantissa + &format_exponent(exponent)
}

/// Returns the mantissa with so many decimals, and the exponent after rounding to them.
fn split_exponent(value: f64, decimals: usize) -> (String, i32) {
    let text = format!("{value:.decimals$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    (mantissa.to_owned(), exponent.parse().unwrap_or(0))
}

fn format_exponent(exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("e{sign}{:02}", exponent.abs())
}

fn trim_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_round_to_significant_digits() {
        let cases = [
            (0.2, 2, "0.2"),
            (0.0534, 2, "0.053"),
            (2.84, 2, "2.8"),
            (12.0, 2, "12"),
            (120.0, 2, "1.2e+02"),
            (0.000_091_4, 2, "9.1e-05"),
            (0.999_96, 4, "1"),
            (99.96, 2, "1e+02"),
            (0.0, 5, "0"),
            (1.0, 5, "1"),
            (0.053_123_4, 5, "0.053123"),
            (45_959.4, 6, "45959.4"),
            (f64::NAN, 5, "null"),
        ];
        for (value, digits, text) in cases {
            assert_eq!(general(value, digits), text, "{value}");
        }
    }

    #[test]
    fn all_digits_have_an_exponent_of_two() {
        assert_eq!(scientific(45_959.0), "4.5959000000000000e+04");
        assert_eq!(scientific(0.0), "0.0000000000000000e+00");
    }
}
