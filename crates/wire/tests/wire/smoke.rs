//! The fuzz targets' entry functions on mutated vectors, so that stable Rust and CI exercise them without a fuzzer.

#[path = "../../../../fuzz/entry.rs"]
mod entry;

use serde_json::Value;

const MUTATIONS: usize = 60;

/// A random stream that is the same on every machine (Knuth's MMIX constants).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % bound.max(1)
    }

    /// Flips a bit, sets a byte, cuts, repeats or inserts.
    fn mutate(&mut self, bytes: &mut Vec<u8>) {
        let at = self.below(bytes.len().min(48));
        let other = self.below(256) as u8;
        match (self.below(6), bytes.get_mut(at)) {
            (0..=2, Some(byte)) => *byte ^= 1 << (other & 7),
            (3, Some(byte)) => *byte = other,
            (4, Some(_)) => bytes.truncate(at),
            _ => bytes.insert(at, other),
        }
    }
}

fn seeds(text: &str) -> Vec<Vec<u8>> {
    let file: Value = serde_json::from_str(text).expect("a JSON file");
    let vectors = file["vectors"].as_array().expect("vectors");
    let hex = |text: &str| -> Vec<u8> {
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
    };
    vectors.iter().map(|vector| hex(vector["bytes"].as_str().unwrap())).collect()
}

fn run(text: &str, seed: u64, entry: fn(&[u8])) {
    let mut random = Random(seed);
    for start in seeds(text) {
        entry(&start);
        for _ in 0..MUTATIONS {
            let mut bytes = start.clone();
            for _ in 0..=random.below(3) {
                random.mutate(&mut bytes);
            }
            entry(&bytes);
        }
    }
}

const TLP: &str = include_str!("../../../../vectors/tlp.json");

#[test]
fn tlp() {
    run(TLP, 1, entry::tlp);
}

#[test]
fn dllp() {
    run(include_str!("../../../../vectors/dllp.json"), 2, entry::dllp);
}

#[test]
fn flit() {
    run(TLP, 3, entry::flit);
    run(include_str!("../../../../vectors/dllp.json"), 4, entry::flit);
}

#[test]
fn nettlp() {
    run(include_str!("../../../../vectors/nettlp.json"), 5, entry::nettlp);
}
