//! Flow control of all virtual channels of a port, both directions, and the policy that returns credits.

use crate::config::{Config, Credits, UpdateFcPolicy, VcBuffers};
use crate::credit::{LimitError, Receive, Transmit, initial};
use crate::event::{Blocked, CreditKind, ProtocolError, TlpShape};
use CreditKind::{Data, Header};
use tlplab_units::{Duration, FcClass, Time, Vc};
use tlplab_wire::dllp::{self, FcPhase};

/// Both kinds of credit of one class, as transmitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TransmitClass {
    header: Transmit,
    data: Transmit,
}

/// Both kinds of credit of one class, as receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ReceiveClass {
    header: Receive,
    data: Receive,
    largest: u32,
    last_update: Time,
    /// The time at which the first credit that is freed and not advertised has waited for the policy's latency.
    update_by: Time,
}

/// Credits a transmitter has left; `None` is infinite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreditsLeft {
    /// TLPs.
    pub header: Option<u32>,
    /// Units of 16 bytes.
    pub data: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FlowControl {
    tx: [[TransmitClass; 3]; 8],
    rx: [[ReceiveClass; 3]; 8],
    /// Virtual channels that carry TLPs, one bit each.
    ready: u8,
    /// Classes that are owed an UpdateFC: bit 4·VC + class.
    due: u32,
    /// No class needs its periodic UpdateFC before this.
    refresh_at: Time,
    /// The first `update_by` of all classes.
    update_at: Time,
    scaled: bool,
    policy: UpdateFcPolicy,
    latency: Option<Duration>,
}

#[inline]
const fn bit(vc: usize, class: usize) -> u32 {
    1 << (4 * vc + class)
}

#[inline]
fn at(vc: Vc) -> usize {
    usize::from(vc.value()) & 7
}

impl FlowControl {
    pub(crate) fn new(config: &Config) -> Self {
        let tx = TransmitClass { header: Transmit::NONE, data: Transmit::NONE };
        let rx = ReceiveClass {
            header: Receive::NONE,
            data: Receive::NONE,
            largest: 0,
            last_update: Time::ZERO,
            update_by: Time::NEVER,
        };
        Self {
            tx: [[tx; 3]; 8],
            rx: [[rx; 3]; 8],
            ready: 0,
            due: 0,
            refresh_at: Time::NEVER,
            update_at: Time::NEVER,
            scaled: false,
            policy: config.fc,
            latency: config.update_fc_latency(),
        }
    }

    /// Sets the longest time that a freed credit may wait for its UpdateFC, from the next on.
    pub(crate) fn set_latency(&mut self, latency: Option<Duration>) {
        self.latency = latency;
    }

    /// Nothing is granted any more.
    pub(crate) fn stop(&mut self) {
        self.ready = 0;
        self.due = 0;
        self.refresh_at = Time::NEVER;
        self.update_at = Time::NEVER;
        let none = TransmitClass { header: Transmit::NONE, data: Transmit::NONE };
        self.tx = [[none; 3]; 8];
    }

    /// Before initialisation: allocates what `config` advertises.
    pub(crate) fn start(&mut self, config: &Config, scaled: bool) {
        self.stop();
        self.scaled = scaled;
        for (vc, buffers) in config.receive.vcs.iter().enumerate() {
            let Some(VcBuffers(buffers)) = buffers else { continue };
            for class in FcClass::ALL {
                let rx = &mut self.rx[vc][class.index()];
                let buffer = buffers[class.index()];
                rx.header.advertise(Header, buffer.header, scaled, self.policy.batch);
                rx.data.advertise(Data, buffer.data, scaled, self.policy.batch);
                rx.largest = u32::from(config.max_data_credits(class));
                rx.update_by = Time::NEVER;
            }
        }
    }

    /// The InitFC of `config`'s port for one class; `None` if the virtual channel is not enabled.
    pub(crate) fn advertisement(
        config: &Config,
        scaled: bool,
        phase: FcPhase,
        vc: Vc,
        class: FcClass,
    ) -> Option<dllp::FlowControl> {
        let VcBuffers(buffers) = config.receive.vcs[at(vc)]?;
        let buffer = buffers[class.index()];
        let value = |kind, credits: Credits| {
            let (scale, count) = initial(kind, credits, scaled);
            (scale, count.unwrap_or(0))
        };
        let (header, data) = (value(Header, buffer.header), value(Data, buffer.data));
        Some(dllp::FlowControl::scaled(phase, class, vc, header, data))
    }

    /// Takes the values of an InitFC.
    pub(crate) fn grant(&mut self, fc: &dllp::FlowControl) {
        self.tx[at(fc.vc)][fc.class.index()] = TransmitClass {
            header: Transmit::granted(Header, fc.header_scale, u16::from(fc.header)),
            data: Transmit::granted(Data, fc.data_scale, fc.data()),
        };
    }

    /// The virtual channel is initialised.
    pub(crate) fn open(&mut self, now: Time, vc: Vc) {
        self.ready |= 1 << vc.value();
        for rx in &mut self.rx[at(vc)] {
            rx.last_update = now;
        }
        self.refresh_at = self.next_refresh();
    }

    #[inline]
    pub(crate) const fn is_open(&self, vc: Vc) -> bool {
        self.ready & 1 << vc.value() != 0
    }

    #[inline]
    pub(crate) fn admit(&self, shape: &TlpShape) -> Result<(), Blocked> {
        if !self.is_open(shape.vc) {
            return Err(Blocked::LinkDown);
        }
        let tx = &self.tx[at(shape.vc)][shape.class.index()];
        if tx.header.admits(1) & tx.data.admits(u32::from(shape.data_credits)) {
            Ok(())
        } else {
            Err(Blocked::Credits)
        }
    }

    #[inline]
    pub(crate) fn consume(&mut self, shape: &TlpShape) {
        let tx = &mut self.tx[at(shape.vc)][shape.class.index()];
        tx.header.consume(1);
        tx.data.consume(u32::from(shape.data_credits));
    }

    /// A TLP is delivered into the receive buffer.
    #[inline]
    pub(crate) fn receive(&mut self, shape: &TlpShape) -> Result<(), ProtocolError> {
        let rx = &mut self.rx[at(shape.vc)][shape.class.index()];
        let header = rx.header.receive(1);
        let data = rx.data.receive(u32::from(shape.data_credits));
        self.check(shape.vc, shape.class);
        match (header, data) {
            (true, true) => Ok(()),
            (header, _) => {
                let kind = if header { Data } else { Header };
                Err(ProtocolError::ReceiverOverflow { vc: shape.vc, class: shape.class, kind })
            }
        }
    }

    /// A TLP left the receive buffer.
    #[inline]
    pub(crate) fn release(&mut self, now: Time, shape: &TlpShape) {
        let rx = &mut self.rx[at(shape.vc)][shape.class.index()];
        rx.header.release(1);
        rx.data.release(u32::from(shape.data_credits));
        if let Some(latency) = self.latency
            && rx.update_by == Time::NEVER
            && (rx.header.has_news() || rx.data.has_news())
        {
            rx.update_by = now + latency;
            self.update_at = self.update_at.min(rx.update_by);
        }
        self.check(shape.vc, shape.class);
    }

    /// Both the arrival of a TLP and its release can leave the peer without credits that are free here.
    #[inline]
    fn check(&mut self, vc: Vc, class: FcClass) {
        let (vc, class) = (at(vc), class.index());
        let rx = &self.rx[vc][class];
        let unblock = self.policy.unblock;
        if rx.header.wants_update(1, unblock) || rx.data.wants_update(rx.largest, unblock) {
            self.owe(vc, class);
        }
    }

    #[inline]
    fn owe(&mut self, vc: usize, class: usize) {
        self.due |= bit(vc, class);
        self.rx[vc][class].header.begin_batch();
        self.rx[vc][class].data.begin_batch();
    }

    /// Owes the peer an UpdateFC, whatever the policy says: it has not heard that the channel is up.
    pub(crate) fn nudge(&mut self, vc: Vc) {
        self.owe(at(vc), FcClass::Posted.index());
    }

    /// The next UpdateFC that is due.
    #[inline]
    pub(crate) fn poll(&mut self, now: Time) -> Option<dllp::FlowControl> {
        if self.due == 0 {
            return None;
        }
        let index = self.due.trailing_zeros() as usize;
        let (vc, class) = (index / 4, index % 4);
        self.due &= !bit(vc, class);
        let rx = &mut self.rx[vc][class];
        rx.last_update = now;
        let was_due = core::mem::replace(&mut rx.update_by, Time::NEVER);
        let header = (rx.header.scale(), rx.header.grant());
        let data = (rx.data.scale(), rx.data.grant());
        if was_due != Time::NEVER {
            self.update_at = self.next_update();
        }
        Some(dllp::FlowControl::scaled(
            FcPhase::Update,
            FcClass::ALL[class],
            Vc::new(vc as u8)?,
            header,
            data,
        ))
    }

    /// Takes an UpdateFC; true if a limit moved.
    pub(crate) fn update(&mut self, fc: &dllp::FlowControl) -> Result<bool, ProtocolError> {
        let (vc, class) = (fc.vc, fc.class);
        let tx = &mut self.tx[at(vc)][class.index()];
        let error = |kind| {
            move |why| match why {
                LimitError::Infinite => ProtocolError::UpdateOfInfinite { vc, class, kind },
                LimitError::Range => ProtocolError::CreditLimit { vc, class, kind },
            }
        };
        let header = tx.header.update(u16::from(fc.header)).map_err(error(Header))?;
        let data = tx.data.update(fc.data()).map_err(error(Data))?;
        Ok(header || data)
    }

    pub(crate) const fn is_scaled(&self) -> bool {
        self.scaled
    }

    #[inline]
    pub(crate) const fn refresh_at(&self) -> Time {
        self.refresh_at
    }

    #[inline]
    pub(crate) const fn update_at(&self) -> Time {
        self.update_at
    }

    /// Credits have waited for the policy's latency: their classes are due.
    pub(crate) fn handle_update(&mut self, now: Time) {
        for vc in 0..8 {
            for class in 0..3 {
                if self.rx[vc][class].update_by <= now {
                    self.rx[vc][class].update_by = Time::NEVER;
                    self.owe(vc, class);
                }
            }
        }
        self.update_at = self.next_update();
    }

    fn next_update(&self) -> Time {
        self.rx.iter().flatten().map(|rx| rx.update_by).min().unwrap_or(Time::NEVER)
    }

    /// The refresh timer expired: every class that has not been told for the interval is due.
    pub(crate) fn handle_refresh(&mut self, now: Time) {
        let Some(interval) = self.policy.refresh else { return };
        for vc in 0..8 {
            for class in 0..3 {
                let rx = &mut self.rx[vc][class];
                if self.ready & 1 << vc != 0 && rx.is_finite() && now >= rx.last_update + interval {
                    rx.last_update = now;
                    self.owe(vc, class);
                }
            }
        }
        self.refresh_at = self.next_refresh();
    }

    /// True if an UpdateFC is due, or the next refresh will tell the peer of credits that it does not know of.
    pub(crate) fn has_news(&self) -> bool {
        let news = |rx: &ReceiveClass| rx.header.has_news() || rx.data.has_news();
        let open = self.rx.iter().enumerate().filter(|(vc, _)| self.ready & 1 << vc != 0);
        self.due != 0 || self.policy.refresh.is_some() && open.flat_map(|(_, classes)| classes).any(news)
    }

    /// Nothing was sent for a long time: moves the refreshes that were due by `until` beyond it, each by whole intervals, and returns the number
    /// that there would have been.
    pub(crate) fn skip_refreshes(&mut self, until: Time) -> u64 {
        let Some(interval) = self.policy.refresh else { return 0 };
        let ready = self.ready;
        let open = self.rx.iter_mut().enumerate().filter(|(vc, _)| ready & 1 << vc != 0);
        let mut skipped = 0;
        for rx in open.flat_map(|(_, classes)| classes).filter(|rx| rx.is_finite()) {
            let missed = (until - rx.last_update).as_fs() / interval.as_fs();
            rx.last_update += interval * missed;
            skipped += missed;
        }
        self.refresh_at = self.next_refresh();
        skipped
    }

    fn next_refresh(&self) -> Time {
        let Some(interval) = self.policy.refresh else { return Time::NEVER };
        (0..8)
            .filter(|vc| self.ready & 1 << vc != 0)
            .flat_map(|vc| &self.rx[vc])
            .filter(|rx| rx.is_finite())
            .map(|rx| rx.last_update + interval)
            .min()
            .unwrap_or(Time::NEVER)
    }

    /// Credits the transmitter has left.
    pub(crate) fn left(&self, vc: Vc, class: FcClass) -> CreditsLeft {
        let tx = &self.tx[at(vc)][class.index()];
        CreditsLeft { header: tx.header.available(), data: tx.data.available() }
    }
}

impl ReceiveClass {
    const fn is_finite(&self) -> bool {
        !(self.header.is_infinite() && self.data.is_infinite())
    }
}
