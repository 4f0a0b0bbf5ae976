//! The smallest program that can be a sandbox: what the integration tests start.

fn main() {
    sandbox::enter(&sandbox::file::OPS);
}
