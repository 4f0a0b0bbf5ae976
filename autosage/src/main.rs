//! The program `autosage`: one call.

fn main() -> std::process::ExitCode {
    sandbox::enter(tools::OPS);
    autosage::cli::main(std::env::args_os(), autosage::Parts::real())
}
