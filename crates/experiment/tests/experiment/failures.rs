//! Transactions that do not end well say where their time went; a TLP that is nullified says so.

use tlplab_experiment::result::{Document, Failures};
use tlplab_experiment::run::{Inputs, run};
use tlplab_experiment::{Experiment, Options};

/// A device below a switch: `more` are its keys, its load and the faults.
fn go(more: &str) -> Document {
    let text = format!(
        "title = \"t\"\nhost = \"ideal\"\nladder = {{ packets = 400 }}\n\
         [switch.sw]\nunder = \"host.rp0\"\nlink = \"gen3 x4\"\nlatency = \"100ns\"\n\
         [device.dev]\nunder = \"sw\"\nlink = \"gen3 x4\"\n{more}"
    );
    let read = |_: &str| Ok(text.clone());
    let experiment =
        Experiment::parse_with(&read, "t.toml", &Options::default()).unwrap_or_else(|e| panic!("{e}"));
    let document = run(experiment, Inputs::default()).unwrap();
    check(&document);
    document
}

/// What holds for every document: the causes of failures sum to their latencies, in the flows and, to the femtosecond, in the ladder.
fn check(document: &Document) {
    for flow in &document.flows {
        let count: u64 = flow.failures.iter().map(|failures| failures.count).sum();
        let e = flow.errors;
        assert_eq!(count, e.ur + e.ca + e.timeout + e.poisoned + e.lost + e.malformed);
        for failures in &flow.failures {
            let sum: f64 = failures.attribution.iter().map(|part| part.total_ns).sum();
            let whole = failures.mean_ns * failures.count as f64;
            assert!((sum - whole).abs() < 1e-6 * whole.max(1.0), "{sum} of {whole}: {failures:?}");
        }
    }
    let ladder = document.ladder.as_ref().unwrap();
    assert!(!ladder.transactions.is_empty());
    for transaction in &ladder.transactions {
        let sum: u64 = transaction.intervals.iter().map(|interval| interval.duration_fs).sum();
        assert_eq!(sum, transaction.end_fs - transaction.start_fs, "{transaction:?}");
    }
}

fn only(document: &Document) -> &Failures {
    let [flow] = &document.flows[..] else { panic!("{:?}", document.flows) };
    let [failures] = &flow.failures[..] else { panic!("{:?}", flow.failures) };
    assert!(document.ladder.as_ref().unwrap().transactions.iter().all(|t| t.ending == failures.ending));
    failures
}

/// Nanoseconds that each of them spent for a cause at a place.
fn each(document: &Document, failures: &Failures, cause: &str, place: &str) -> f64 {
    let cause = document.causes.iter().position(|name| name.0.name() == cause).unwrap();
    let here = failures.attribution.iter().filter(|part| part.cause == cause && part.place == place);
    here.map(|part| part.total_ns).sum::<f64>() / failures.count as f64
}

const READ: &str = "dev = { op = \"read\", size = \"64B\", outstanding = 1, count = 10 }\n";

#[test]
fn unsupported_reads_take_their_way_there_and_back() {
    let document = go(
        "[load]\ndev = { op = \"read\", size = \"64B\", address = 0xD000_0000, outstanding = 1, count = 10 }\n",
    );
    let failures = only(&document);
    assert_eq!((failures.ending.token(), failures.count), ("ur", 10));
    // The request passes the switch, and so does the completion that refuses it: 100 ns each.
    assert_eq!(each(&document, failures, "processing", "sw"), 200.0);
    assert_eq!(each(&document, failures, "no answer", "dev"), 0.0);
    assert!(each(&document, failures, "serialisation", "dev → sw") > 0.0);
    assert!(each(&document, failures, "serialisation", "sw → dev") > 0.0);
}

#[test]
fn aborted_reads_take_their_way_there_and_back() {
    let document = go(&format!(
        "[load]\n{READ}[[fault]]\nlink = \"sw\"\ndirection = \"up\"\ntlp = 1\ncount = 10\nof = \"MRd\"\ndamage = \"abort\"\n"
    ));
    let failures = only(&document);
    assert_eq!((failures.ending.token(), failures.count), ("ca", 10));
    assert_eq!(each(&document, failures, "processing", "sw"), 200.0);
    assert_eq!(each(&document, failures, "no answer", "dev"), 0.0);
}

/// The request is lost behind the switch: the requester knows nothing of that for 10 µs.
#[test]
fn a_lost_request_waits_for_the_completion_timeout() {
    let fault = "[[fault]]\nlink = \"sw\"\ndirection = \"up\"\ntlp = 1\ncount = 10\nof = \"MRd\"\ndamage = \"lose\"\n";
    let document = go(&format!("completion_timeout = \"10us\"\n[load]\n{READ}{fault}"));
    let failures = only(&document);
    assert_eq!((failures.ending.token(), failures.count), ("timeout", 10));
    assert_eq!(each(&document, failures, "processing", "sw"), 100.0, "one way");
    let waited = each(&document, failures, "no answer", "dev");
    assert!(waited > 9_000.0 && waited < failures.mean_ns, "{waited}");
    assert_eq!(failures.attribution[0].place, "dev", "the largest first");
}

/// Reads that wait for a link that is down have that as their reason.
#[test]
fn writes_end_as_lost_when_their_link_goes_down() {
    let document = go("completion_timeout = \"10us\"\n\
        [load]\ndev = { op = \"write\", size = \"4KiB\", outstanding = 4, count = 40 }\n\
        [[fault]]\nlink = \"sw\"\ndown = \"3us\"\n");
    let failures = &document.flows[0].failures;
    assert!(
        failures.iter().any(|failures| failures.ending.token() == "lost" && failures.count > 0),
        "{failures:?}"
    );
}

/// With cut-through a switch forwards the head of a TLP before it knows that the tail is damaged.
#[test]
fn a_nullified_tlp_is_marked_in_the_ladder_and_counted() {
    let document = go("[load]\ndev = { op = \"write\", size = \"256B\", outstanding = 1, count = 10 }\n\
        [[fault]]\nlink = \"dev\"\ndirection = \"up\"\ntlp = 3\nof = \"MWr\"\n");
    let index = |name: &str| document.links.iter().position(|link| link.name == name).unwrap();
    let ladder = document.ladder.as_ref().unwrap();
    let nullified: Vec<_> = ladder.packets.iter().filter(|packet| packet.nullified).collect();
    let [packet] = nullified[..] else { panic!("{nullified:?}") };
    assert_eq!((packet.link, packet.direction, packet.kind.as_str()), (index("sw"), 0, "MWr"));
    let json = serde_json::to_value(&document).unwrap();
    let shown = json["ladder"]["packets"].as_array().unwrap();
    assert_eq!(shown.iter().filter(|packet| packet["nullified"] == true).count(), 1);
    let counted = |name: &str| document.links[index(name)].directions[0].nullified;
    assert_eq!((counted("sw"), counted("dev")), (1, 0));
    // The damaged one is shown as such, and so are it and the one behind it when they come again.
    let on_dev = |bad: bool, replay: bool| {
        let here = ladder.packets.iter().filter(|p| p.link == index("dev") && p.kind == "MWr");
        here.filter(|p| p.bad == bad && p.replay == replay).count()
    };
    assert_eq!((on_dev(true, false), on_dev(false, true)), (1, 2));
}
