//! The walls inside repositories: commits work; what git would run or believe outside cannot be written.

use crate::support::{Folders, present, run};
use sandbox::{Environment, Kind};

const IDENTITY: &str = "export GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=e GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=e";

/// Sets repositories up with the host's own git.
async fn prepare(folders: &Folders, text: &str) -> Environment {
    let host = folders.environment(Kind::Host).await.unwrap();
    let ran = run(&host, &format!("set -e; {IDENTITY}; export GIT_CONFIG_GLOBAL=/dev/null; {text}")).await;
    assert!(ran.succeeded(), "{}", ran.output);
    host
}

async fn succeeds(environment: &Environment, text: &str) {
    let ran = run(environment, &format!("{IDENTITY}; {text}")).await;
    assert!(ran.succeeded(), "{text}: {}", ran.output);
}

async fn fails(environment: &Environment, text: &str) {
    let ran = run(environment, text).await;
    assert!(!ran.succeeded(), "{text}: {}", ran.output);
}

/// Ways to make the person's git run or believe something. `G` is the git folder.
const ATTACKS: [&str; 9] = [
    "echo '#!/bin/sh' >G/hooks/pre-commit",
    "mv G/hooks G/h2 && mkdir G/hooks && touch G/hooks/pre-commit",
    "echo '[core] fsmonitor = x' >>G/config",
    "git config -f G/config core.fsmonitor x",
    "rm -f G/config && echo '[core] fsmonitor = x' >G/config",
    "mv G G2 && cp -r G2 G && touch G/hooks/post-checkout && rm -r G/hooks/post-checkout",
    "rm -f G/commondir && mkdir -p evil/objects evil/refs && echo ../evil >G/commondir && rm -f G/commondir",
    "ln -sf evil G/hooks/x && rm G/hooks/x",
    "echo '[core] fsmonitor = x' >G/config.worktree && rm G/config.worktree",
];

async fn attack(folders: &Folders, git: &str) {
    for text in ATTACKS {
        let text = text.replace("G2", &format!("{git}2")).replace("G/", &format!("{git}/")).replace("G ", &format!("{git} "));
        // Each does what it is to do where nothing is in its way; on a copy, so that one does not spoil the next.
        let host = folders.environment(Kind::Host).await.unwrap();
        let there = format!("rm -rf ../copy && cp -a . ../copy && cd ../copy && {text}");
        let ran = run(&host, &there).await;
        assert!(ran.succeeded(), "on the host: {text}: {}", ran.output);
        let native = folders.environment(Kind::Native).await.unwrap();
        fails(&native, &text).await;
    }
}

#[tokio::test]
async fn the_repository_of_the_workspace_is_guarded() {
    if !present("git") {
        return;
    }
    let folders = Folders::new();
    prepare(&folders, "git init -q; echo a >f; git add f; git commit -qm one; rm -rf .git/hooks; mkdir .git/hooks").await;
    attack(&folders, ".git").await;
    let environment = folders.environment(Kind::Native).await.unwrap();
    succeeds(&environment, "echo b >>f && git commit -qam two && git branch new && git checkout -q new && git gc -q").await;
    succeeds(
        &environment,
        "git fsck && test -z \"$(git status --porcelain)\" && git log --format=%s | diff - <(echo two; echo one)",
    )
    .await;
}

#[tokio::test]
async fn missing_hooks_cannot_be_made_and_nothing_is_left() {
    if !present("git") {
        return;
    }
    let folders = Folders::new();
    prepare(&folders, "git init -q; rm -rf .git/hooks").await;
    let (one, two) = (folders.environment(Kind::Native).await.unwrap(), folders.environment(Kind::Native).await.unwrap());
    for environment in [&one, &two] {
        fails(environment, "touch .git/hooks/pre-commit").await;
        fails(environment, "echo ../evil >.git/commondir").await;
    }
    let placeholder = folders.path("workspace/.git/commondir");
    one.close().await;
    assert!(placeholder.exists(), "the other environment needs it");
    fails(&two, "rm .git/commondir").await;
    // Dropped, not closed: it is taken away all the same.
    drop(two);
    assert!(!placeholder.exists());
}

#[tokio::test]
async fn the_repository_of_a_worktree_is_guarded() {
    if !present("git") {
        return;
    }
    let folders = Folders::new();
    prepare(&folders, "cd ..; rmdir workspace; git init -q main; cd main; echo a >f; git add f; git commit -qm one; git worktree add -q ../workspace").await;
    let main = folders.path("main");
    let environment = folders.environment(Kind::Native).await.unwrap();
    succeeds(&environment, "echo b >>f && git commit -qam two && test -z \"$(git status --porcelain)\"").await;
    fails(&environment, "echo 'gitdir: evil' >.git").await;
    fails(&environment, "mv .git x").await;
    fails(&environment, &format!("cat {}/f", main.display())).await;
    for file in ["hooks/pre-commit", "config", "commondir", "worktrees/workspace/commondir", "worktrees/workspace/gitdir"] {
        fails(&environment, &format!("echo x >>{}/.git/{file}", main.display())).await;
    }
    let host = folders.environment(Kind::Host).await.unwrap();
    succeeds(&host, "git -C ../main log --all --format=%s | grep -q two").await;
}

#[tokio::test]
async fn a_gitfile_that_was_planted_opens_no_other_repository() {
    if !present("git") {
        return;
    }
    let folders = Folders::new();
    prepare(&folders, "cd ..; git init -q other; echo secret >other/.git/description").await;
    folders.write("workspace/.git", &format!("gitdir: {}/.git\n", folders.path("other").display()));
    let host = folders.environment(Kind::Host).await.unwrap();
    succeeds(&host, "cat \"$(git rev-parse --git-dir)/description\"").await;
    let environment = folders.environment(Kind::Native).await.unwrap();
    fails(&environment, &format!("cat {}/.git/description", folders.path("other").display())).await;
}

#[tokio::test]
async fn repositories_of_submodules_are_guarded() {
    if !present("git") {
        return;
    }
    let folders = Folders::new();
    prepare(&folders, &with_submodule("workspace")).await;
    attack(&folders, ".git/modules/vendor/sub").await;
    let environment = folders.environment(Kind::Native).await.unwrap();
    succeeds(&environment, "cd vendor/sub && echo b >>f && git commit -qam two && cd ../.. && git commit -qam sub").await;
    for text in [
        "echo 'gitdir: evil' >vendor/sub/.git",
        "mv vendor/sub/.git x",
        "mv .git/modules .git/m2",
        "mv .git/modules/vendor .git/modules/v2",
    ] {
        fails(&environment, text).await;
    }
}

/// A library as a submodule at `vendor/sub` of a repository in `folder`, next to the workspace.
fn with_submodule(folder: &str) -> String {
    let add = "git -c protocol.file.allow=always submodule --quiet add ../library vendor/sub";
    format!(
        "cd ..; git init -q library; cd library; touch f; git add f; git commit -qm one; mkdir -p ../{folder}; cd ../{folder}; git init -q; {add}; git commit -qm all"
    )
}

/// Each of these works on the host, on a copy of everything, and fails behind the walls.
async fn only_on_the_host(folders: &Folders, attacks: &[&str]) {
    let host = folders.environment(Kind::Host).await.unwrap();
    let native = folders.environment(Kind::Native).await.unwrap();
    for text in attacks {
        let ran = run(&host, &format!("set -e; cp -a .. \"$TMPDIR/copy.$$\"; cd \"$TMPDIR/copy.$$/workspace\"; ( {text} ) || {{ rm -rf \"$TMPDIR/copy.$$\"; exit 9; }}; rm -rf \"$TMPDIR/copy.$$\"")).await;
        assert!(ran.succeeded(), "on the host: {text}: {}", ran.output);
        fails(&native, text).await;
    }
}

#[tokio::test]
async fn another_repository_cannot_take_a_submodules_place() {
    if !present("git") {
        return;
    }
    let folders = Folders::new();
    prepare(&folders, &with_submodule("workspace")).await;
    let attacks = ["mv vendor/sub x && git init -q vendor/sub", "mv vendor x && git init -q vendor/sub"];
    only_on_the_host(&folders, &attacks).await;
    // The declaration can be taken away, which changes nothing.
    let environment = folders.environment(Kind::Native).await.unwrap();
    succeeds(&environment, "rm .gitmodules && touch vendor/sub/new").await;
    drop(environment);
    only_on_the_host(&folders, &attacks).await;
}

#[tokio::test]
async fn submodules_of_a_worktrees_main_repository_are_guarded() {
    if !present("git") {
        return;
    }
    let folders = Folders::new();
    let add = "rmdir ../workspace; git worktree add -q ../workspace; cd ../workspace; git -c protocol.file.allow=always submodule --quiet update --init";
    prepare(&folders, &format!("{}; {add}", with_submodule("main"))).await;
    let environment = folders.environment(Kind::Native).await.unwrap();
    succeeds(&environment, "cd vendor/sub && echo b >>f && git commit -qam two && cd ../.. && git commit -qam sub && git status")
        .await;
    let main = folders.path("main/.git");
    for module in ["modules/vendor/sub", "worktrees/workspace/modules/vendor/sub"] {
        for file in ["config", "config.worktree", "commondir", "hooks/post-checkout"] {
            fails(&environment, &format!("echo x >>{}/{module}/{file}", main.display())).await;
        }
        fails(&environment, &format!("mv {0}/{module} {0}/x", main.display())).await;
    }
    fails(&environment, "mv vendor/sub x").await;
    drop(environment);
    let host = folders.environment(Kind::Host).await.unwrap();
    succeeds(&host, "echo >>../main/.git/modules/vendor/sub/hooks/post-checkout").await;
    let placeholders =
        "cd ../main/.git && ls -d config.worktree commondir modules/vendor/sub/*{config.worktree,commondir} 2>/dev/null";
    fails(&host, &format!("{placeholders} | grep .")).await;
}

#[tokio::test]
async fn linked_worktrees_are_guarded_from_the_main_one() {
    if !present("git") {
        return;
    }
    let folders = Folders::new();
    prepare(&folders, "git init -q; git commit -q --allow-empty -m one; git worktree add -q ../linked").await;
    only_on_the_host(
        &folders,
        &[
            "echo x >.git/worktrees/linked/config.worktree",
            "echo x >.git/worktrees/linked/commondir",
            "mv .git/worktrees/linked x",
            "mv .git/worktrees y",
        ],
    )
    .await;
}

#[tokio::test]
async fn what_the_configuration_names_in_the_workspace_is_guarded() {
    if !present("git") {
        return;
    }
    let folders = Folders::new();
    folders.write("workspace/.hooks/pre-commit", "");
    folders.write("workspace/tools/git/config", "[include]\n\tpath = further\n[core]\n\thooksPath = other/hooks\n");
    folders.write("workspace/tools/git/further", "");
    let set = "git config core.hooksPath .hooks; git config include.path ../tools/git/config; git config includeIf.onbranch:x.path ~/absent";
    prepare(&folders, &format!("git init -q; {set}; touch f; git add f; git commit -qm one")).await;
    only_on_the_host(
        &folders,
        &[
            "echo x >>.hooks/pre-commit",
            "touch .hooks/post-commit",
            "mv .hooks x",
            "echo x >>tools/git/config",
            "echo x >>tools/git/further",
            "rm tools/git/config",
            "mv tools x",
            "mkdir -p other/hooks && touch other/hooks/x",
        ],
    )
    .await;
    let environment = folders.environment(Kind::Native).await.unwrap();
    succeeds(&environment, "echo b >>f && git commit -qam two && touch tools/git/new tools/new && git status").await;
}

#[tokio::test]
async fn hooks_that_are_links_stay_and_lead_to_what_is_guarded() {
    if !present("git") {
        return;
    }
    let one = "rm .git/hooks/*; ln -s ../../scripts/check .git/hooks/pre-commit";
    let all = "rm -r .git/hooks; ln -s ../scripts .git/hooks";
    for (make, attacks) in [
        (one, ["echo x >>scripts/check", "mv scripts x", "rm .git/hooks/pre-commit"]),
        (all, ["echo x >>scripts/check", "mv scripts x", "rm .git/hooks && mkdir .git/hooks"]),
    ] {
        let folders = Folders::new();
        folders.write("workspace/scripts/check", "");
        prepare(&folders, &format!("git init -q; {make}; chmod +x scripts/check; touch f; git add f")).await;
        only_on_the_host(&folders, &attacks).await;
        let environment = folders.environment(Kind::Native).await.unwrap();
        succeeds(&environment, "git commit -qm one && cat .git/hooks/* && test -L .git/hooks -o -L .git/hooks/pre-commit").await;
    }
}

#[tokio::test]
async fn a_configuration_that_names_the_workspace_leaves_it_writable() {
    if !present("git") {
        return;
    }
    let folders = Folders::new();
    prepare(&folders, "git init -q; git config core.hooksPath .; touch f; git add f").await;
    let environment = folders.environment(Kind::Native).await.unwrap();
    succeeds(&environment, "touch g && git commit -qm one").await;
}

#[tokio::test]
async fn what_never_ends_in_a_git_folder_keeps_no_environment_waiting() {
    let folders = Folders::new();
    let host = folders.environment(Kind::Host).await.unwrap();
    for make in ["mkfifo evil/FILE", "ln -s /dev/zero evil/FILE", "printf '\\377' >evil/FILE"] {
        for file in ["gitdir", "config", "commondir"] {
            let text = format!(
                "rm -rf evil; mkdir evil; echo \"gitdir: $PWD/evil\" >.git; touch evil/HEAD; echo \"$PWD/.git\" >evil/gitdir; rm -f evil/{file}; {}",
                make.replace("FILE", file)
            );
            succeeds(&host, &text).await;
            let environment = folders.environment(Kind::Native).await.unwrap();
            succeeds(&environment, "test -e .git").await;
        }
    }
    // Nor where the folder is the workspace's own.
    succeeds(
        &host,
        "rm .git; mkdir .git; mkfifo .git/commondir .git/config.worktree .git/config .gitmodules; ln -s /dev/zero .git/worktrees",
    )
    .await;
    let environment = folders.environment(Kind::Native).await.unwrap();
    succeeds(&environment, "test -e .git").await;
}

#[tokio::test]
async fn a_git_folder_that_is_a_link_leads_nowhere_new() {
    let folders = Folders::new();
    folders.write("secret/config", "secret");
    std::os::unix::fs::symlink("../secret", folders.path("workspace/.git")).unwrap();
    let host = folders.environment(Kind::Host).await.unwrap();
    succeeds(&host, "grep secret .git/config").await;
    let environment = folders.environment(Kind::Native).await.unwrap();
    fails(&environment, "grep secret .git/config").await;
}

#[tokio::test]
async fn commits_carry_the_persons_name_and_nothing_else_of_their_configuration() {
    if !present("git") {
        return;
    }
    let folders = Folders::new();
    folders.write("person/.gitconfig", "[user]\n\tname = A \"B\"\n\temail = a@b.c\n[credential]\n\thelper = store\n");
    prepare(&folders, "git init -q; touch f; git add f").await;
    let mut spec = folders.spec(trace::Grant::default());
    spec.user_home = Some(folders.path("person"));
    let environment = sandbox::Sandbox::start(Kind::Native, crate::support::program()).unwrap().environment(&spec).await.unwrap();
    let ran = run(&environment, "git commit -qm one && git log --format='%an <%ae>' && git config --get credential.helper").await;
    assert_eq!(ran.told(), "A B <a@b.c>\nexit 1\n");
}
