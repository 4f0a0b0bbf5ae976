//! `cargo xtask bench`: what a run costs beside the model, measured against a scripted one.

use std::path::Path;
use std::process::ExitCode;

pub struct Wish;
impl Wish {
    pub fn parse(_: &[&str]) -> anyhow::Result<Wish> {
        Ok(Wish)
    }
}
pub fn run(_: &Path, _: &Wish) -> anyhow::Result<ExitCode> {
    anyhow::bail!("")
}
