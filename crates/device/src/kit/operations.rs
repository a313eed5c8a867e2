//! Operations under way, each with its purpose: DMA whose end an [`OpId`] tells, timers whose end a number tells.
//!
//! A forgotten operation (`clear`, a new value) is over silently: its end, should it come late, belongs to no operation.

use crate::contract::{Context, OpId};
use std::collections::VecDeque;
use tlplab_units::Time;

/// Operations that end in any order, each with what it is for.
///
/// ```
/// use tlplab_device::{OpId, kit::Operations};
///
/// let mut reads = Operations::new();
/// reads.begin(OpId(4), "first");
/// reads.begin(OpId(5), "second");
/// assert_eq!(reads.end(OpId(5)), Some("second"));
/// assert_eq!(reads.end(OpId(5)), None); // it is over
/// reads.clear(); // a reset
/// assert_eq!(reads.end(OpId(4)), None); // an answer that comes late is ignored
/// ```
#[derive(Clone, Debug)]
pub struct Operations<T> {
    /// By their numbers, which rise: the oldest is first. What has ended between others leaves an empty place; neither end has one.
    places: VecDeque<(OpId, Option<T>)>,
    under_way: usize,
}

impl<T> Default for Operations<T> {
    fn default() -> Self {
        Self { places: VecDeque::new(), under_way: 0 }
    }
}

impl<T> Operations<T> {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }
    /// An operation began.
    pub fn begin(&mut self, op: OpId, what: T) {
        self.under_way += 1;
        match self.places.back() {
            Some((last, _)) if *last > op => self.places.insert(self.place(op), (op, Some(what))),
            _ => self.places.push_back((op, Some(what))),
        }
    }
    /// It ended: what it was for. `None` if it is none of these.
    pub fn end(&mut self, op: OpId) -> Option<T> {
        let place = if self.places.front()?.0 == op { 0 } else { self.place(op) };
        let what = self.places.get_mut(place).filter(|(found, _)| *found == op)?.1.take()?;
        self.under_way -= 1;
        self.tidy();
        Some(what)
    }
    fn place(&self, op: OpId) -> usize {
        self.places.partition_point(|(other, _)| *other < op)
    }
    /// No empty place at either end, and not many more between than there are operations.
    fn tidy(&mut self) {
        while self.places.front().is_some_and(|(_, what)| what.is_none()) {
            self.places.pop_front();
        }
        while self.places.back().is_some_and(|(_, what)| what.is_none()) {
            self.places.pop_back();
        }
        if self.places.len() > 2 * self.under_way + 32 {
            self.places.retain(|(_, what)| what.is_some());
        }
    }

    /// The purpose of the operation that began last.
    pub fn last_mut(&mut self) -> Option<&mut T> {
        self.places.back_mut()?.1.as_mut()
    }
    /// The purpose of each, in the order of their beginnings.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.places.iter().filter_map(|(_, what)| what.as_ref())
    }
    /// The same, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.places.iter_mut().filter_map(|(_, what)| what.as_mut())
    }
    /// The number under way.
    pub fn len(&self) -> usize {
        self.under_way
    }
    /// True if none is.
    pub fn is_empty(&self) -> bool {
        self.under_way == 0
    }
    /// Only these go on; the others are forgotten.
    pub fn retain(&mut self, mut goes_on: impl FnMut(&T) -> bool) {
        self.places.retain(|(_, what)| what.as_ref().is_some_and(&mut goes_on));
        self.under_way = self.places.len();
    }
    /// All of them are forgotten.
    pub fn clear(&mut self) {
        self.places.clear();
        self.under_way = 0;
    }
}

/// Operations that end in any order, and whose ends count in the order of their beginnings: descriptors of a ring, frames of a queue.
///
/// ```
/// use tlplab_device::{OpId, kit::InOrder};
///
/// let mut frames = InOrder::new();
/// frames.begin(OpId(0), "first");
/// frames.begin(OpId(1), "second");
/// frames.begin_over("lost", 0); // it needs no operation
/// assert_eq!(frames.end(OpId(1), 512), Some(&mut "second"));
/// assert_eq!(frames.next(), None); // the first is not over
/// assert_eq!(frames.end(OpId(0), 64), Some(&mut "first"));
/// let done: Vec<_> = std::iter::from_fn(|| frames.next()).collect();
/// assert_eq!(done, [("first", 64), ("second", 512), ("lost", 0)]);
/// ```
#[derive(Clone, Debug)]
pub struct InOrder<T, R> {
    queue: VecDeque<Entry<T, R>>,
}

#[derive(Clone, Debug)]
struct Entry<T, R> {
    op: Option<OpId>,
    what: T,
    result: Option<R>,
}

impl<T, R> Default for InOrder<T, R> {
    fn default() -> Self {
        Self { queue: VecDeque::new() }
    }
}

impl<T, R> InOrder<T, R> {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }
    /// An operation began.
    pub fn begin(&mut self, op: OpId, what: T) {
        self.queue.push_back(Entry { op: Some(op), what, result: None });
    }
    /// Something has its place in the order, and is over already.
    pub fn begin_over(&mut self, what: T, result: R) {
        self.queue.push_back(Entry { op: None, what, result: Some(result) });
    }
    /// An operation ended so: what it is for. `None` if it is none of these, or was over.
    pub fn end(&mut self, op: OpId, result: R) -> Option<&mut T> {
        let entry = self.queue.iter_mut().find(|entry| entry.op == Some(op))?;
        (entry.op, entry.result) = (None, Some(result));
        Some(&mut entry.what)
    }
    /// The next in order, if it is over: what it was for, and how it ended.
    #[allow(clippy::should_implement_trait)] // it is no iterator: there may be more later
    pub fn next(&mut self) -> Option<(T, R)> {
        self.queue.front().filter(|entry| entry.result.is_some())?;
        let Entry { what, result, .. } = self.queue.pop_front()?;
        result.map(|result| (what, result))
    }
    /// It is the next again.
    pub fn put_back(&mut self, what: T, result: R) {
        self.queue.push_front(Entry { op: None, what, result: Some(result) });
    }

    /// The number not yet counted: under way, or over behind others that are.
    pub fn len(&self) -> usize {
        self.queue.len()
    }
    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
    /// True if an operation is under way.
    pub fn waits(&self) -> bool {
        self.queue.iter().any(|entry| entry.op.is_some())
    }
    /// All of them are forgotten.
    pub fn clear(&mut self) {
        self.queue.clear();
    }
}

/// Timers by what each is for. The number of a timer is used once, so one that was forgotten comes in vain.
///
/// ```
/// use tlplab_device::{Action, Context, kit::Alarms};
/// use tlplab_units::{Duration, Time};
///
/// let (mut next_op, mut actions) = (0, Vec::new());
/// let mut cx = Context::new(Time::ZERO, &[], &mut next_op, &mut actions);
/// let mut alarms = Alarms::new();
/// alarms.set(&mut cx, Time::ZERO + Duration::from_us(1), "the sensor has measured");
/// let Some(Action::Timer { id, .. }) = actions.pop() else { panic!("a timer was set") };
/// assert_eq!(alarms.due(id), Some("the sensor has measured"));
/// assert_eq!(alarms.due(id), None);
/// ```
#[derive(Clone, Debug)]
pub struct Alarms<T> {
    next: u64,
    set: Operations<T>,
}

impl<T> Default for Alarms<T> {
    fn default() -> Self {
        Self { next: 0, set: Operations::new() }
    }
}

impl<T> Alarms<T> {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }
    /// Sets a timer.
    pub fn set(&mut self, cx: &mut Context<'_>, at: Time, what: T) {
        cx.timer(at, self.next);
        self.set.begin(OpId(self.next), what);
        self.next += 1;
    }
    /// A timer has come: what it was for.
    pub fn due(&mut self, id: u64) -> Option<T> {
        self.set.end(OpId(id))
    }
    /// Only these go on.
    pub fn retain(&mut self, goes_on: impl FnMut(&T) -> bool) {
        self.set.retain(goes_on);
    }
    /// All of them are forgotten. Their numbers are not used again.
    pub fn clear(&mut self) {
        self.set.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Begin,
        Over,
        /// The operation that began as the n-th of all ends, whether it did before or not.
        End(usize),
        Next,
        Clear,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => Just(Step::Begin),
            1 => Just(Step::Over),
            4 => (0usize..60).prop_map(Step::End),
            3 => Just(Step::Next),
            1 => Just(Step::Clear),
        ];
        proptest::collection::vec(step, 0..200)
    }

    proptest! {
        #[test]
        fn no_operation_is_lost_or_answered_twice(steps in steps()) {
            let mut operations = Operations::new();
            let (mut begun, mut open) = (0u64, BTreeMap::new());
            for step in steps {
                match step {
                    Step::Begin | Step::Over => {
                        operations.begin(OpId(begun), 1000 + begun);
                        open.insert(begun, 1000 + begun);
                        begun += 1;
                    }
                    Step::End(which) => {
                        prop_assert_eq!(operations.end(OpId(which as u64)), open.remove(&(which as u64)));
                    }
                    Step::Next => {
                        prop_assert_eq!(operations.last_mut().copied(), open.values().next_back().copied());
                        operations.retain(|what| what % 7 != 0);
                        open.retain(|_, what| *what % 7 != 0);
                    }
                    Step::Clear => {
                        operations.clear();
                        open.clear();
                    }
                }
                prop_assert_eq!(operations.len(), open.len());
                prop_assert!(operations.iter().eq(open.values()));
            }
        }

        #[test]
        fn operations_count_once_and_in_order(steps in steps()) {
            let mut queue = InOrder::new();
            // What was begun and not counted, in order, and how it ended.
            let mut model: Vec<(u64, Option<u64>)> = Vec::new();
            let mut begun = 0;
            for step in steps {
                match step {
                    Step::Begin => {
                        queue.begin(OpId(begun), begun);
                        model.push((begun, None));
                        begun += 1;
                    }
                    Step::Over => {
                        queue.begin_over(begun, 7);
                        model.push((begun, Some(7)));
                        begun += 1;
                    }
                    Step::End(which) => {
                        let which = which as u64;
                        let waits = model.iter_mut().find(|(what, end)| *what == which && end.is_none());
                        prop_assert_eq!(queue.end(OpId(which), which * 2).map(|what| *what), waits.as_ref().map(|_| which));
                        if let Some((_, end)) = waits {
                            *end = Some(which * 2);
                        }
                    }
                    Step::Next => {
                        let expected = match model.first() {
                            Some(&(what, Some(end))) => Some((what, end)),
                            _ => None,
                        };
                        model.drain(..usize::from(expected.is_some()));
                        prop_assert_eq!(queue.next(), expected);
                    }
                    Step::Clear => {
                        queue.clear();
                        model.clear();
                    }
                }
                prop_assert_eq!(queue.len(), model.len());
                prop_assert_eq!(queue.waits(), model.iter().any(|(_, end)| end.is_none()));
            }
        }

        #[test]
        fn an_alarm_comes_once_and_never_after_it_was_forgotten(steps in steps()) {
            let mut alarms = Alarms::new();
            let mut open = BTreeMap::new();
            let (mut next_op, mut actions) = (0, Vec::new());
            let mut cx = Context::new(Time::ZERO, &[], &mut next_op, &mut actions);
            let mut set = 0u64;
            for step in steps {
                match step {
                    Step::Begin | Step::Over => {
                        alarms.set(&mut cx, Time::ZERO, set);
                        open.insert(set, set);
                        set += 1;
                    }
                    Step::End(which) => {
                        prop_assert_eq!(alarms.due(which as u64), open.remove(&(which as u64)));
                    }
                    Step::Next => {
                        alarms.retain(|what| what % 3 != 0);
                        open.retain(|_, what| *what % 3 != 0);
                    }
                    Step::Clear => {
                        alarms.clear();
                        open.clear();
                    }
                }
            }
        }
    }

    #[test]
    fn operations_with_falling_numbers_are_found() {
        let mut operations = Operations::new();
        for op in [5, 3, 4, 9, 1] {
            operations.begin(OpId(op), op);
        }
        assert_eq!(
            [1, 9, 5, 2, 3, 4].map(|op| operations.end(OpId(op))),
            [Some(1), Some(9), Some(5), None, Some(3), Some(4)]
        );
        assert!(operations.is_empty());
    }

    #[test]
    fn whether_there_are_any_is_known() {
        let mut operations = Operations::new();
        assert!(operations.is_empty() && operations.last_mut().is_none());
        operations.begin(OpId(3), 3);
        assert!(!operations.is_empty());
        *operations.last_mut().expect("one") += 1;
        operations.begin(OpId(4), 4);
        operations.iter_mut().for_each(|what| *what *= 10);
        assert_eq!((operations.end(OpId(3)), operations.end(OpId(4))), (Some(40), Some(40)));
        assert!(operations.is_empty());

        let mut queue = InOrder::new();
        assert!(queue.is_empty());
        queue.begin_over("late", 1);
        assert!(!queue.is_empty() && !queue.waits());
        let next = queue.next().expect("it is over");
        queue.begin_over("later", 2);
        queue.put_back(next.0, next.1);
        assert_eq!((queue.len(), queue.next(), queue.next()), (2, Some(("late", 1)), Some(("later", 2))));
        assert!(queue.is_empty());
    }

    #[test]
    fn an_endless_operation_keeps_no_place_of_ended_operations() {
        let mut operations = Operations::new();
        operations.begin(OpId(0), 0);
        for op in 1..10_000 {
            operations.begin(OpId(op), op);
            operations.begin(OpId(op + 20_000), op);
            assert_eq!(operations.end(OpId(op)), Some(op));
            assert_eq!(operations.end(OpId(op + 20_000)), Some(op));
        }
        assert!(operations.places.len() < 40 && operations.len() == 1);
        assert_eq!(operations.end(OpId(0)), Some(0));
    }

    #[test]
    fn places_between_the_oldest_and_the_newest_are_few() {
        let mut operations = Operations::new();
        operations.begin(OpId(0), 0);
        operations.begin(OpId(1), 1);
        for op in 2..1_000 {
            operations.begin(OpId(op), op);
            assert_eq!(operations.end(OpId(op - 1)), Some(op - 1));
            assert!(operations.places.len() <= 40 && operations.len() == 2, "{}", operations.places.len());
            assert!(operations.iter().eq(&[0, op]));
        }
        assert_eq!((operations.end(OpId(0)), operations.end(OpId(999))), (Some(0), Some(999)));
        assert!(operations.places.is_empty());
    }
}
