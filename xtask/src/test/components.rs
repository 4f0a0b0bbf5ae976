//! What tests may miss on a machine, and the one line that brings it. Nothing is ever installed from here.

/// Component, as tests name it in `skipped: no X`, and what to do.
const REMEDIES: [(&str, &str); 8] = [
    ("ca-certificates", "apt-get install -y ca-certificates"),
    ("gcc", "apt-get install -y gcc libc6-dev"),
    ("gdb", "apt-get install -y gdb"),
    ("git", "apt-get install -y git"),
    ("landlock", "cargo run --release -- doctor"),
    ("namespaces", "cargo run --release -- doctor"),
    ("perl", "apt-get install -y perl"),
    ("python3", "apt-get install -y python3"),
];

/// What to do about a missing component, in one line.
pub fn remedy(component: &str) -> &'static str {
    let known = REMEDIES.iter().find(|(name, _)| *name == component);
    known.map_or("xtask/src/test/components.rs does not know how to get it", |(_, remedy)| *remedy)
}

/// Whether `required`, names separated by commas or `all`, asks for the component.
pub fn is_required(required: &str, component: &str) -> bool {
    required.split(',').map(str::trim).any(|name| name == component || name == "all")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_required_is_named_or_all() {
        assert!(is_required("git, perl", "perl"));
        assert!(is_required("all", "perl"));
        assert!(!is_required("git", "perl"));
        assert!(!is_required("", "perl"));
    }
}
