//! Every provider through the real binary, at a server that holds each body to what that vendor takes.

use crate::support::server::{Answer, Server};
use crate::support::{Place, on_every};
use model::catalog::{self, Catalog, Overrides};
use serde_json::json;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xe0\x08\x06\0\0\0\0";
const GIF: &[u8] = b"GIF89a\x10\0\x09\0\0\0\0\0\0";
const WEBP: &[u8] = b"RIFF\x1a\0\0\0WEBPVP8L\x0d\0\0\0\x2f\x0f\0\x02\0\0\0\0\0\0\0\0\0\0\0\0";

/// The model of `provider` of which the most is known.
fn best_known(provider: &str) -> String {
    let table = Catalog::default();
    let ids = table.models().iter().map(|row| format!("{provider}/{}", row.name));
    let mut known: Vec<_> = ids.filter_map(|id| table.known(&id).map(|row| (row.structured != Some(true), id.clone()))).collect();
    known.sort_by_key(|(is_free, _)| *is_free);
    known.into_iter().next().map_or_else(|| format!("{provider}/m"), |(_, id)| id)
}

/// Calls side by side with words before them, results with pictures, one that failed, arguments that are none, a turn that
/// ends behind results, a person who goes on, an answer of a form, and the request that checks the model.
#[test]
fn every_vendor_takes_what_it_is_sent() {
    let providers: Vec<&str> = catalog::providers().iter().map(|row| row.name).collect();
    on_every(&providers, |provider| {
        let looks = ["a.png", "b.gif", "c.webp", "none"].map(|path| json!({"name": "read", "arguments": {"path": path}}));
        let looked = Answer { text: Some("Let me look.".into()), calls: looks.to_vec(), ..Answer::default() };
        let wrong = Answer { calls: vec![json!({"name": "bash", "arguments": "{\"comm"})], ..Answer::default() };
        let done = Answer { text: Some("{\"count\": 2}".into()), ..Answer::default() };
        let (place, server) = (Place::new(&format!("vendor-{provider}")), Server::start(vec![looked, wrong, done]));
        std::fs::write(place.work().join("a.png"), PNG).unwrap();
        std::fs::write(place.work().join("b.gif"), GIF).unwrap();
        std::fs::write(place.work().join("c.webp"), WEBP).unwrap();
        let schema = place.home().with_file_name("schema.json");
        let count = json!({"count": {"type": "integer"}});
        let form = json!({"type": "object", "properties": count, "required": ["count"], "additionalProperties": false});
        std::fs::write(&schema, form.to_string()).unwrap();
        let (work, schema) = (place.work().display().to_string(), schema.display().to_string());
        let (model, base_url) = (best_known(provider), server.base_url_of(provider));
        let at = ["--config", "none", "--base-url", &base_url, "--key-env", "TEST_KEY"];
        let new = ["run", "look", "--workspace", &work, "--max-turns", "2", "--output-schema", &schema, "--model", &model];
        let run = place.start(&[&new[..], &at].concat());
        assert_eq!((run.code, server.bodies().len()), (3, 2), "{model}: {}", run.err);
        let on = ["resume", "--last", "-m", "Go on.", "--max-turns", "9", "--model", &model];
        let more = place.start(&[&on[..], &at].concat());
        assert_eq!((more.code, more.out.as_str()), (0, "{\"count\": 2}\n"), "{model}: {}", more.err);
        let spec = catalog::find(&model, &Overrides { base_url: Some(base_url.clone()), ..Overrides::default() }).unwrap();
        let last = server.bodies().pop().unwrap();
        assert!(last.contains("Go on."), "{model}: {last}");
        for (kind, base64) in [("image/png", "iVBORw0KGgo"), ("image/gif", "R0lGOD"), ("image/webp", "UklGR")] {
            assert_eq!(last.contains(base64), model::takes(&spec, kind), "{model}: {kind} in {last}");
        }
        place.start(&[&["models", "check", &model], &at[..]].concat());
        assert_eq!(server.bodies().len(), 4, "{model} is checked");
    });
}
