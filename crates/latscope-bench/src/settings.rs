//! The parameters of a point as one type: planned, sent to the worker and read there.

use crate::param::{Param, ParamValueKind, PlanInput};
use anyhow::{Context, Result, ensure};

use latscope_core::catalogue::SyscallInvocation;
use latscope_core::plan::{MeasurementPoint, ParamValue, Params};
pub use latscope_core::word::KeywordEnum;
use latscope_os::kernels::{arith, atomics, bandwidth, stream};

/// The parameters of a point, one type for planning, results and the worker. [`settings!`](crate::settings!)
/// makes it of a struct.
pub trait PointSettings: Sized {
    /// The parameters, in the order in which they are documented.
    const LIST: &'static [Param];

    /// Returns the parameters as they are planned and stand in the result.
    fn params(&self) -> Params;

    /// Reads the parameters from `params`; `None` if a necessary parameter is missing or has a value that it cannot
    /// have.
    fn from_params(params: &Params) -> Option<Self>;

    /// Reads the parameters of a point in the worker: the settings then hold all that was sent.
    ///
    /// # Errors
    /// A parameter is missing, unknown, or has another value than it may have.
    fn read(point: &MeasurementPoint) -> Result<Self> {
        let invalid =
            || format!("the parameters of a point of {} are invalid: {:?}", point.probe, point.params);
        let settings = Self::from_params(&point.params).with_context(invalid)?;
        ensure!(settings.params() == point.params, invalid());
        Ok(settings)
    }

    /// Checks that a point can be read.
    ///
    /// # Errors
    /// [`PointSettings::read`] fails.
    fn check(point: &MeasurementPoint) -> Result<()> {
        Self::read(point).map(drop)
    }
}

/// The parameters of a point that has none.
impl PointSettings for () {
    const LIST: &'static [Param] = &[];

    fn params(&self) -> Params {
        Params::new()
    }

    fn from_params(_: &Params) -> Option<()> {
        Some(())
    }
}

/// The value of a parameter; `None` if it is missing or cannot have this one.
pub fn get<V: SettingValue>(params: &Params, name: &str) -> Option<V> {
    V::from_param(params.get(name))
}

/// A type that a field of [`settings!`](crate::settings!) may have: `u64`, `u32`, `String`, one of
/// [`words!`](crate::words), or an `Option` of these for a parameter that not every point has.
pub trait SettingValue: Sized {
    /// Kind of the values that can be requested on the command line.
    const KIND: ParamValueKind;
    /// A single value: for an `Option`, what is in it.
    type One;

    /// Returns the value as it stands in results; `None` for a parameter that the point does not have.
    fn to_param(&self) -> Option<ParamValue>;

    /// The value of a parameter; `None` if it cannot have this one.
    fn from_param(param: Option<&ParamValue>) -> Option<Self>;

    /// Converts a requested value; `None` if the parameter cannot have it.
    fn one(asked: &ParamValue) -> Option<Self::One>;
}

impl SettingValue for u64 {
    const KIND: ParamValueKind = ParamValueKind::Number;
    type One = u64;

    fn to_param(&self) -> Option<ParamValue> {
        Some((*self).into())
    }

    fn from_param(param: Option<&ParamValue>) -> Option<u64> {
        Self::one(param?)
    }

    fn one(asked: &ParamValue) -> Option<u64> {
        if let ParamValue::Number(number) = asked { Some(*number) } else { None }
    }
}

impl SettingValue for u32 {
    const KIND: ParamValueKind = ParamValueKind::Number;
    type One = u32;

    fn to_param(&self) -> Option<ParamValue> {
        u64::from(*self).to_param()
    }

    fn from_param(param: Option<&ParamValue>) -> Option<u32> {
        Self::one(param?)
    }

    fn one(asked: &ParamValue) -> Option<u32> {
        u64::one(asked)?.try_into().ok()
    }
}

impl SettingValue for String {
    const KIND: ParamValueKind = ParamValueKind::Stated;
    type One = String;

    fn to_param(&self) -> Option<ParamValue> {
        Some(self.as_str().into())
    }

    fn from_param(param: Option<&ParamValue>) -> Option<String> {
        Self::one(param?)
    }

    fn one(asked: &ParamValue) -> Option<String> {
        if let ParamValue::Text(text) = asked { Some(text.clone()) } else { None }
    }
}

impl<W: ParamChoice> SettingValue for W {
    const KIND: ParamValueKind = ParamValueKind::Choice(W::MEANINGS);
    type One = W;

    fn to_param(&self) -> Option<ParamValue> {
        Some(self.word().into())
    }

    fn from_param(param: Option<&ParamValue>) -> Option<W> {
        Self::one(param?)
    }

    fn one(asked: &ParamValue) -> Option<W> {
        if let ParamValue::Text(word) = asked { W::from_word(word) } else { None }
    }
}

impl<T: SettingValue<One = T>> SettingValue for Option<T> {
    const KIND: ParamValueKind = T::KIND;
    type One = T;

    fn to_param(&self) -> Option<ParamValue> {
        self.as_ref()?.to_param()
    }

    fn from_param(param: Option<&ParamValue>) -> Option<Option<T>> {
        match param {
            None => Some(None),
            Some(value) => T::one(value).map(Some),
        }
    }

    fn one(asked: &ParamValue) -> Option<T> {
        T::one(asked)
    }
}

/// The values that were asked for of one parameter. A parameter that several probes of a family
/// have may take words that others know: those are left out.
#[derive(Debug, Clone, PartialEq)]
pub struct ParamValueRequest<T>(Option<Vec<T>>);

impl<T: Clone> ParamValueRequest<T> {
    /// Returns the values requested for the parameter `name` of a field of type `V`.
    pub fn of<V: SettingValue<One = T>>(input: &PlanInput, name: &str) -> ParamValueRequest<T> {
        ParamValueRequest(input.values.get(name).map(|values| values.iter().filter_map(V::one).collect()))
    }

    /// Returns true if the parameter was given.
    pub fn given(&self) -> bool {
        self.0.is_some()
    }

    /// The values asked for, or the usual ones.
    pub fn or(&self, usual: &[T]) -> Vec<T> {
        self.0.clone().unwrap_or_else(|| usual.to_vec())
    }

    /// The first value asked for.
    pub fn first(&self) -> Option<T> {
        self.0.as_ref()?.first().cloned()
    }
}

/// The parameters of a point as a struct, and as a second one what was asked for of each:
///
/// ```
/// latscope_bench::settings! {
///     /// A pool and its tasks.
///     struct Tasks, requested as TasksRequest {
///         /// Threads in the pool, with a task each.
///         threads: u64, axis;
///         /// Memory of its own that each thread sums.
///         size: u64 as Size;
///     }
/// }
/// ```
///
/// The comment of a field is its help, its name that of the parameter (`caller_thread("caller-thread")`
/// where it is no identifier). `as` states the [`ParamValueKind`](crate::probe::ParamValueKind) where the type does
/// not; points that differ only in an `axis` make up a curve. A last field `..place: Place;` has the parameters of
/// another such struct. `TasksRequest::of(input)` has an [`ParamValueRequest`](crate::settings::ParamValueRequest) a
/// field; a struct of which nothing can be asked for goes without.
#[macro_export]
macro_rules! settings {
    (
        $(#[$about:meta])*
        $visibility:vis struct $name:ident $(, requested as $asked:ident)? {
            $($(#[doc = $help:literal])+ $field:ident $(($named:literal))? : $type:ty $(as $kind:ident)? $(, $axis:ident)?;)+
            $(..$rest:ident : $more:ty;)?
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq)]
        $visibility struct $name {
            $($(#[doc = $help])+ pub $field: $type,)+
            $(pub $rest: $more,)?
        }

        impl $crate::settings::PointSettings for $name {
            const LIST: &'static [$crate::param::Param] = {
                const OWN: &[$crate::param::Param] = &[$($crate::param::Param {
                    name: $crate::settings!(@name $field $($named)?),
                    help: concat!($($help),+).trim_ascii_start(),
                    kind: $crate::settings!(@kind $type $(as $kind)?),
                    axis: $crate::settings!(@axis $($axis)?),
                }),+];
                const PARTS: &[&[$crate::param::Param]] =
                    &[OWN $(, <$more as $crate::settings::PointSettings>::LIST)?];
                &$crate::settings::joined::<{ OWN.len() $(+ <$more as $crate::settings::PointSettings>::LIST.len())? }>(PARTS)
            };

            fn params(&self) -> latscope_core::plan::Params {
                let own = $crate::settings::given([$((
                    $crate::settings!(@name $field $($named)?),
                    <$type as $crate::settings::SettingValue>::to_param(&self.$field),
                )),+]);
                $(let own = own.into_iter().chain($crate::settings::PointSettings::params(&self.$rest)).collect();)?
                own
            }

            fn from_params(params: &latscope_core::plan::Params) -> Option<Self> {
                Some($name {
                    $($field: $crate::settings::get(params, $crate::settings!(@name $field $($named)?))?,)+
                    $($rest: $crate::settings::PointSettings::from_params(params)?,)?
                })
            }
        }

        $crate::settings!(@asked $visibility ($($asked)?) $($field $(($named))?: $type;)+);
    };
    (@asked $visibility:vis () $($field:tt)+) => {};
    (@asked $visibility:vis ($asked:ident) $($field:ident $(($named:literal))?: $type:ty;)+) => {
        /// Values requested for each parameter.
        #[allow(dead_code, reason = "not every parameter can be asked for")]
        $visibility struct $asked {
            $($field: $crate::settings::ParamValueRequest<<$type as $crate::settings::SettingValue>::One>),+
        }

        impl $asked {
            $visibility fn of(input: &$crate::param::PlanInput) -> Self {
                $asked {
                    $($field: $crate::settings::ParamValueRequest::of::<$type>(
                        input,
                        $crate::settings!(@name $field $($named)?),
                    )),+
                }
            }
        }
    };
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $named:literal) => { $named };
    (@kind $type:ty) => { <$type as $crate::settings::SettingValue>::KIND };
    (@kind $type:ty as $kind:ident) => { $crate::param::ParamValueKind::$kind };
    (@axis) => { false };
    (@axis axis) => { true };
}

/// The parameters that have a value.
pub fn given<const N: usize>(params: [(&str, Option<ParamValue>); N]) -> Params {
    params.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// Returns a value as it stands in results where it is not the usual one.
pub fn unless<V: SettingValue + PartialEq>(usual: &V, value: &V) -> Option<ParamValue> {
    value.to_param().filter(|_| value != usual)
}

/// The parameters of all `parts`, `N` together.
#[doc(hidden)]
pub const fn joined<const N: usize>(parts: &[&[Param]]) -> [Param; N] {
    let mut all = [parts[0][0]; N];
    let (mut part, mut at, mut taken) = (0, 0, 0);
    while taken < N {
        if at == parts[part].len() {
            (part, at) = (part + 1, 0);
        } else {
            all[taken] = parts[part][at];
            (at, taken) = (at + 1, taken + 1);
        }
    }
    all
}

/// A parameter that is one of some words.
pub trait ParamChoice: KeywordEnum {}

impl ParamChoice for SyscallInvocation {}
impl ParamChoice for bandwidth::Operation {}
impl ParamChoice for bandwidth::BandwidthStride {}
impl ParamChoice for stream::StreamKernel {}
impl ParamChoice for arith::Number {}
impl ParamChoice for atomics::Atomic {}
impl ParamChoice for latscope_os::memory::RegionPageSize {}
impl ParamChoice for latscope_os::seccomp::Looks {}

/// Defines an enum of [words](latscope_core::words!) that is the value of a parameter.
#[macro_export]
macro_rules! words {
    ($(#[$about:meta])* $visibility:vis enum $name:ident $values:tt) => {
        latscope_core::words! { $(#[$about])* $visibility enum $name $values }

        impl $crate::settings::ParamChoice for $name {}
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use latscope_core::plan::params;

    crate::words! {
        /// An order of accesses.
        enum Order {
            /// One after the other.
            Forward = "forward",
            /// As a permutation has them.
            RandomWalk = "random-walk",
        }
    }

    crate::settings! {
        /// A walk.
        struct Walk, requested as WalkRequest {
            /// Bytes
            /// walked over.
            size: u64 as Size, axis;
            /// The order.
            order: Order;
            /// Threads at once.
            threads_at_once("threads"): Option<u32>;
        }
    }

    crate::settings! {
        /// A walk that is repeated.
        struct Repeated {
            /// How often.
            times: u64;
            ..walk: Walk;
        }
    }

    #[test]
    fn the_parameters_of_another_struct_follow() {
        let walk = Walk { size: 4096, order: Order::Forward, threads_at_once: None };
        let repeated = Repeated { times: 3, walk: walk.clone() };
        let planned = params([("size", 4096.into()), ("order", "forward".into()), ("times", 3.into())]);
        assert_eq!(repeated.params(), planned);
        assert_eq!(Repeated::read(&point(planned)).unwrap(), repeated);
        assert!(Repeated::read(&point(walk.params())).is_err());
        let names: Vec<_> = Repeated::LIST.iter().map(|param| param.name).collect();
        assert_eq!(names, ["times", "size", "order", "threads"]);
    }

    fn point(params: Params) -> MeasurementPoint {
        MeasurementPoint {
            probe: "memory.walk".to_owned(),
            revision: 1,
            params,
            title: String::new(),
            row: false,
        }
    }

    #[test]
    fn what_is_planned_is_read() {
        let walk = Walk { size: 4096, order: Order::RandomWalk, threads_at_once: None };
        assert_eq!(walk.params(), params([("size", 4096.into()), ("order", "random-walk".into())]));
        let beside = Walk { threads_at_once: Some(2), ..walk.clone() };
        assert_eq!(beside.params()["threads"], 2.into());
        for walk in [walk, beside] {
            assert_eq!(Walk::read(&point(walk.params())).unwrap(), walk);
        }
        assert_eq!((Order::from_word("forward"), Order::from_word("back")), (Some(Order::Forward), None));
        assert_eq!(
            (bandwidth::BandwidthStride::WORDS, arith::Number::F64.word()),
            (&["every", "fourth", "integer"][..], "f64")
        );
    }

    #[test]
    fn a_field_says_what_can_be_asked_for() {
        let known: Vec<_> = Walk::LIST.iter().map(|p| (p.name, p.help, p.kind, p.axis)).collect();
        let order = ParamValueKind::Choice(&[
            ("forward", "One after the other."),
            ("random-walk", "As a permutation has them."),
        ]);
        assert_eq!(
            known,
            [
                ("size", "Bytes walked over.", ParamValueKind::Size, true),
                ("order", "The order.", order, false),
                ("threads", "Threads at once.", ParamValueKind::Number, false),
            ]
        );
    }

    #[test]
    fn what_was_asked_for_is_typed_and_words_of_others_are_left_out() {
        let values = [
            ("size".to_owned(), vec![1.into(), 2.into()]),
            ("order".to_owned(), vec!["forward".into(), "sideways".into()]),
        ];
        let input = PlanInput {
            profile: crate::param::SurveyProfile::Normal,
            survey: false,
            values: values.into(),
            directories: Vec::new(),
        };
        let asked = WalkRequest::of(&input);
        assert_eq!((asked.size.or(&[7]), asked.order.or(Order::ALL)), (vec![1, 2], vec![Order::Forward]));
        assert_eq!((asked.threads_at_once.given(), asked.threads_at_once.or(&[7])), (false, vec![7]));
        assert_eq!(asked.order.first(), Some(Order::Forward));
    }

    #[test]
    fn what_is_missing_unknown_or_of_another_kind_is_an_error() {
        for wrong in [
            params([("size", 4096.into())]),
            params([("size", 4096.into()), ("order", "backward".into())]),
            params([("size", "4096".into()), ("order", "forward".into())]),
            params([("size", 4096.into()), ("order", "forward".into()), ("pages", 3.into())]),
        ] {
            let error = Walk::read(&point(wrong)).unwrap_err().to_string();
            assert!(error.starts_with("the parameters of a point of memory.walk are invalid: {"), "{error}");
        }
    }
}
