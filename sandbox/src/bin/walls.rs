//! The smallest program that can be a sandbox: what the tests of this crate name as `Program::Path`.

fn main() {
    sandbox::enter(&sandbox::file::OPS);
}
