//! Words become an expression, by recursive descent: one function for each rule of the grammar.

use super::lexer::{self, Word};
use super::{Function, Mistake, Node, Operator, What};

/// Parentheses, signs and calls in each other.
const DEEPEST: usize = 64;
const COMPARISONS: [Operator; 6] =
    [Operator::Less, Operator::AtMost, Operator::More, Operator::AtLeast, Operator::Equal, Operator::Unequal];

pub(super) fn parse(text: &str) -> Result<Node, Mistake> {
    let mut parser = Parser { words: lexer::words(text)?, next: 0, depth: 0 };
    if *parser.word() == Word::End {
        return Err(Mistake::new(0, "the expression is empty").hint("write a metric, such as throughput"));
    }
    let root = parser.or()?;
    match parser.word() {
        Word::End => Ok(root),
        Word::Sign(")") => Err(Mistake::new(parser.at(), "the opening parenthesis is missing")),
        Word::Sign(sign) if COMPARISONS.iter().any(|one| one.sign() == *sign) => {
            let mistake = Mistake::new(parser.at(), "comparisons cannot be chained");
            Err(mistake.hint("write a < b and b < c"))
        }
        _ => Err(Mistake::new(parser.at(), "an operator is missing before this")
            .hint("expected + - * / < <= > >= == != and, or")),
    }
}

struct Parser {
    words: Vec<(usize, Word)>,
    next: usize,
    depth: usize,
}

type Parsed = Result<Node, Mistake>;

impl Parser {
    fn word(&self) -> &Word {
        &self.words[self.next].1
    }

    fn at(&self) -> usize {
        self.words[self.next].0
    }

    /// Goes on if the next word is this sign or name.
    fn accept(&mut self, wanted: &str) -> bool {
        let found = match self.word() {
            Word::Sign(sign) => *sign == wanted,
            Word::Name(name) => name == wanted,
            Word::Value(_) | Word::End => false,
        };
        self.next += usize::from(found);
        found
    }

    /// Goes one level down, if it is not too deep.
    fn deeper(&mut self, rule: fn(&mut Self) -> Parsed) -> Parsed {
        if self.depth == DEEPEST {
            let mistake =
                Mistake::new(self.at(), format!("parentheses or signs are nested more than {DEEPEST} deep"));
            return Err(mistake.hint("compute a part of it under a name of its own"));
        }
        self.depth += 1;
        let parsed = rule(self);
        self.depth -= 1;
        parsed
    }

    /// Operands with operators between them, from left to right.
    fn chain(&mut self, operators: &[Operator], operand: fn(&mut Self) -> Parsed) -> Parsed {
        let mut left = operand(self)?;
        loop {
            let at = self.at();
            let Some(operator) = operators.iter().find(|one| self.accept(one.sign())) else {
                return Ok(left);
            };
            let right = operand(self)?;
            left = Node { at, what: What::Two(*operator, Box::new(left), Box::new(right)) };
        }
    }

    fn or(&mut self) -> Parsed {
        self.chain(&[Operator::Or], Self::and)
    }

    fn and(&mut self) -> Parsed {
        self.chain(&[Operator::And], Self::not)
    }

    fn not(&mut self) -> Parsed {
        let at = self.at();
        if self.accept("not") {
            return Ok(Node { at, what: What::Not(Box::new(self.deeper(Self::not)?)) });
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Parsed {
        let left = self.sum()?;
        let at = self.at();
        let Some(operator) = COMPARISONS.into_iter().find(|one| self.accept(one.sign())) else {
            return Ok(left);
        };
        let right = self.sum()?;
        Ok(Node { at, what: What::Two(operator, Box::new(left), Box::new(right)) })
    }

    fn sum(&mut self) -> Parsed {
        self.chain(&[Operator::Add, Operator::Subtract], Self::product)
    }

    fn product(&mut self) -> Parsed {
        self.chain(&[Operator::Multiply, Operator::Divide], Self::sign)
    }

    fn sign(&mut self) -> Parsed {
        let at = self.at();
        if self.accept("-") {
            return Ok(Node { at, what: What::Negative(Box::new(self.deeper(Self::sign)?)) });
        }
        self.value()
    }

    fn value(&mut self) -> Parsed {
        let at = self.at();
        let word = self.word().clone();
        match word {
            Word::Value(value) => {
                self.next += 1;
                Ok(Node { at, what: What::Value(value) })
            }
            Word::Name(name) if matches!(name.as_str(), "and" | "or" | "not") => {
                Err(Mistake::new(at, format!("an operand is missing before {name}")))
            }
            Word::Name(name) => {
                self.next += 1;
                if *self.word() == Word::Sign("(") { self.call(at, &name) } else { name_at(at, name) }
            }
            Word::Sign("(") => {
                self.next += 1;
                let inner = self.deeper(Self::or)?;
                self.close(at)?;
                Ok(inner)
            }
            Word::Sign(sign) => Err(Mistake::new(at, format!("an operand is missing before {sign}"))),
            Word::End => Err(Mistake::new(at, "an operand is missing at the end")),
        }
    }

    fn call(&mut self, at: usize, name: &str) -> Parsed {
        let function = match name {
            "min" => Function::Min,
            "max" => Function::Max,
            "abs" => Function::Abs,
            _ => {
                let mistake = Mistake::new(at, format!("unknown function {name}"));
                return Err(mistake.hint("expected min, max or abs"));
            }
        };
        let open = self.at();
        self.next += 1;
        let mut arguments = vec![self.deeper(Self::or)?];
        while self.accept(",") {
            arguments.push(self.deeper(Self::or)?);
        }
        self.close(open)?;
        match (function, arguments.len()) {
            (Function::Abs, 2..) => Err(Mistake::new(at, "abs takes one number")),
            _ => Ok(Node { at, what: What::Call(function, arguments) }),
        }
    }

    fn close(&mut self, open: usize) -> Result<(), Mistake> {
        if self.accept(")") {
            return Ok(());
        }
        let mistake = Mistake::new(self.at(), "a closing parenthesis is missing");
        Err(mistake.hint(format!("it opens in column {}", open + 1)))
    }
}

fn name_at(at: usize, name: String) -> Parsed {
    let good = |part: &str| !part.is_empty();
    if name.split('.').all(good) {
        return Ok(Node { at, what: What::Name(name) });
    }
    Err(Mistake::new(at, format!("{name} is not a valid name"))
        .hint("put dots between words, as in nic.latency.p99"))
}
