/// The streams of a device, stated once: a constant with the number of each, from 0 on, and `STREAMS`, their names and what their operations
/// do, for [`Device::streams`](crate::Device::streams). Results of runs name flows so.
///
/// ```
/// tlplab_device::streams! {
///     /// Descriptors.
///     FETCH: "fetch" = "read";
///     /// Data, and what stays behind them.
///     DATA: "data" = "write";
/// }
/// assert_eq!((FETCH, DATA), (0, 1));
/// assert_eq!(STREAMS, [("fetch", "read"), ("data", "write")]);
/// ```
#[macro_export]
macro_rules! streams {
    ($($(#[$doc:meta])* $see:vis $name:ident: $flow:literal = $operation:literal;)+) => {
        /// Its streams.
        #[allow(unreachable_pub)]
        pub const STREAMS: &[$crate::contract::Stream] = &[$(($flow, $operation)),+];
        $crate::streams!(@numbers 0; $($(#[$doc])* $see $name;)+);
    };
    (@numbers $number:expr; $(#[$doc:meta])* $see:vis $name:ident; $($rest:tt)*) => {
        $(#[$doc])*
        $see const $name: u16 = $number;
        $crate::streams!(@numbers $number + 1; $($rest)*);
    };
    (@numbers $number:expr;) => {};
}
