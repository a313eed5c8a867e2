//! Random numbers that depend on nothing but a seed and a name.

/// A stream of random numbers (SplitMix64), the same on every machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random(u64);

impl Random {
    /// The stream of the run's `seed`, a component's `name` and what it is for: streams do not depend on the order of declaration.
    pub fn keyed(seed: u64, name: &str, purpose: &str) -> Self {
        // FNV-1a over both texts, with a separator that no UTF-8 text contains.
        let text = name.bytes().chain([0xFF]).chain(purpose.bytes());
        let hash = text.fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
        });
        let mut key = Self(seed);
        Self(key.next() ^ hash)
    }

    /// 64 random bits.
    #[allow(clippy::should_implement_trait)] // It never ends.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    /// A number from 0 to `n` − 1; biased by less than `n` / 2^64.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first outputs of SplitMix64 for the state 1234567, as published with the algorithm's test vectors (Vigna's splitmix64.c).
    #[test]
    fn splitmix64() {
        let mut random = Random(1_234_567);
        assert_eq!(
            [random.next(), random.next(), random.next()],
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn streams_differ() {
        let first = |seed, name, purpose| Random::keyed(seed, name, purpose).next();
        let all = [
            first(1, "a", "b"),
            first(2, "a", "b"),
            first(1, "b", "a"),
            first(1, "ab", ""),
            first(1, "", "ab"),
        ];
        for (i, a) in all.iter().enumerate() {
            assert!(all[..i].iter().all(|b| a != b));
        }
        let mut random = Random::keyed(1, "nic", "addresses");
        let mut seen = [0u32; 10];
        (0..10_000).for_each(|_| seen[random.below(10) as usize] += 1);
        assert!(seen.iter().all(|&n| (900..1100).contains(&n)), "{seen:?}");
    }
}
