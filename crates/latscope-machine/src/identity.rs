//! Name of the machine by which its results are found again. It does not reveal other names of the machine.

use super::root::SystemRoot;
use hmac_sha256::HMAC;

/// Application id of latscope: `systemd-id128 machine-id --app-specific=30cdc042d703462da04531ef17746ba9` prints the
/// same name.
const APPLICATION: u128 = 0x30cdc042_d703_462d_a045_31ef17746ba9;

/// The name: a keyed hash of `/etc/machine-id`, as machine-id(5) requires of programs that store or send it. `None` if
/// that file is missing or not set up.
pub fn machine_id(root: &SystemRoot) -> Option<String> {
    let secret = parse_machine_id(&root.read_text("/etc/machine-id")?)?;
    let hash = HMAC::mac(APPLICATION.to_be_bytes(), secret.to_be_bytes());
    let mut name = u128::from_be_bytes(hash[..16].try_into().expect("a hash of 32 bytes has 16"));
    // A random UUID (version 4) by its form.
    name = name & !(0xf << 76) | (4 << 76);
    name = name & !(0b11 << 62) | (0b10 << 62);
    Some(format!("{name:032x}"))
}

/// 32 hexadecimal digits; all zeros, `uninitialized` and the like are no identity.
fn parse_machine_id(text: &str) -> Option<u128> {
    let sound = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = sound.then(|| u128::from_str_radix(text, 16).ok()).flatten()?;
    (number != 0).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::super::root::tree;
    use super::*;

    fn name(text: &str) -> Option<String> {
        let (_directory, root) = tree(&[("/etc/machine-id", text)]);
        machine_id(&root)
    }

    #[test]
    fn the_name_is_that_of_systemd_and_not_the_machine_id() {
        // As the algorithm of sd_id128_get_machine_app_specific(3) has it, computed independently.
        let made_up = "0123456789abcdef0123456789abcdef";
        assert_eq!(name(&format!("{made_up}\n")).as_deref(), Some("1fcb33f1eb654cefa8dd86cfcd02585c"));
        assert_ne!(name("0123456789abcdef0123456789abcdee"), name(made_up));
    }

    #[test]
    fn what_is_not_set_up_is_no_name() {
        let zeros = "0".repeat(32);
        for text in ["", "\n", "uninitialized\n", &zeros, "+123456789abcdef0123456789abcdef", "0123"] {
            assert_eq!(name(text), None, "{text:?}");
        }
        let (_directory, root) = tree(&[]);
        assert_eq!(machine_id(&root), None);
    }
}
