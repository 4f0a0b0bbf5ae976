//! The smallest program that has the operations of the tools inside its walls: what the integration tests start.

fn main() {
    sandbox::enter(tools::OPS);
}
