//! The picture in the README: the demo's story as a terminal shows it, drawn anew by `UPDATE_EXPECT=1`.

use super::{demo, left, without_time};
use crate::support::Place;
use expect_test::expect_file;

/// As many columns as the longest line takes.
const COLUMNS: u16 = 110;
/// What stands for the turns between the first and the claim, so that the picture fits a page.
const LEFT_OUT: &str = "… it reads the script, drops the zeros, and sees the report run …";
const STYLE: &str = r#"text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono","Liberation Mono",monospace;fill:#d5d9e2;white-space:pre}.b{font-weight:700;fill:#fff}.d{fill:#8b93a3}.c{fill:#5cc8d8}.g{fill:#86cf7e}.r{fill:#f47a82}.t{fill:#8b93a3}"#;

#[test]
fn the_picture_in_the_readme_shows_what_a_terminal_does() {
    let place = Place::new("demo-picture");
    let told = demo(&place, &["--sandbox", "native"]);
    assert_eq!(told.code, 0, "{}", told.err);
    let shown = place.at_terminal_of(COLUMNS, &["show", "--last"], &[("TERM", "xterm")], &[]);
    let run = place.run_folder().file_name().unwrap().to_string_lossy().into_owned();
    let intro = told.err.lines().take_while(|line| !line.is_empty()).chain([""]).map(str::to_owned);
    let shells_own = |line: &str| line.contains("report.sh: ") && line.contains("08");
    let story = shown.out.lines().map(|line| match shells_own(line) {
        // Each shell has words of its own; these are of one that many have.
        true => "\u{1b}[2m  report.sh: 9: Illegal number: 08\u{1b}[0m".to_owned(),
        false => {
            line.replace(&left(&place).display().to_string(), "/tmp/autosage-demo/hours").replace(&run, "20261129-190302-demo")
        }
    });
    let mut lines: Vec<String> = intro.chain(story).collect();
    let at = |words: &str| lines.iter().position(|line| plain(line).starts_with(words)).unwrap();
    let between = at("read report.sh")..at("submit");
    lines.splice(between, [LEFT_OUT.to_owned(), String::new()]);
    expect_file!["../../../../docs/demo.svg"].assert_eq(&drawn(&lines));
}

/// `line` without colours.
fn plain(line: &str) -> String {
    pieces(line).into_iter().map(|(_, text)| text).collect()
}

/// The pieces of a line, each with the code of its colour.
fn pieces(line: &str) -> Vec<(&str, &str)> {
    let mut rest = line.split("\u{1b}[");
    let first = rest.next().into_iter().map(|text| ("0", text));
    first.chain(rest.map(|piece| piece.split_once('m').unwrap())).filter(|(_, text)| !text.is_empty()).collect()
}

/// A window with `lines`.
fn drawn(lines: &[String]) -> String {
    let (width, height) = (897, 48 + 17 * lines.len() + 14);
    let mut svg = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-label="A terminal: autosage demo">
<style>{STYLE}</style>
<rect width="{width}" height="{height}" rx="9" fill="#15181e"/>
<circle cx="21" cy="19" r="5.5" fill="#f0655c"/><circle cx="40" cy="19" r="5.5" fill="#f3bd4f"/><circle cx="59" cy="19" r="5.5" fill="#5fc454"/>
<text class="t" x="448.5" y="23" text-anchor="middle">autosage demo</text>
"##
    );
    for (place, line) in lines.iter().enumerate().filter(|(_, line)| !line.is_empty()) {
        let class = if line == LEFT_OUT { r#" class="t""# } else { "" };
        let text: String = pieces(line).into_iter().map(|(code, text)| span(code, text)).collect();
        svg.push_str(&format!("<text{class} x=\"18\" y=\"{}\" xml:space=\"preserve\">{text}</text>\n", 48 + 17 * place));
    }
    svg + "</svg>\n"
}

fn span(code: &str, text: &str) -> String {
    let text = without_time(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let class = match code {
        "0" => return text,
        "1" => "b",
        "2" => "d",
        "36" => "c",
        "32" => "g",
        "31" => "r",
        other => panic!("no colour: {other}"),
    };
    format!(r#"<tspan class="{class}">{text}</tspan>"#)
}
