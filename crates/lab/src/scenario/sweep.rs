//! `[sweep]` of a scenario: lists and ranges of values for its keys, which make many scenarios out of one.
//!
//! ```toml
//! [sweep]
//! "coap.congestion" = ["default", "cocoa", "6cocoa"]
//! "traffic.period" = "2s..20s step 2s"
//! ```
//!
//! Every point of the sweep is read as a whole scenario with all checks, so an error about a swept value names
//! the line of the sweep that holds it. Ranges are in `range`.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};

use super::error::{ConfigError, ConfigErrors, Fault, Origin};
use super::range;
use super::rows::Rows;
use super::source::{Laid, Source};
use super::value::quoted;
use super::{LoadError, Scenario, Text};

/// The most points that a sweep can have.
pub const POINTS_MAX: usize = 100_000;

/// What the value of a swept key must be.
const ALLOWED: &str = "a list of values, or a range as \"2s..20s step 2s\" or \"2..20 step 2\"";

/// Keys of which every point has the same: its name, and the seeds that are its replicas.
const NEVER_SWEPT: [&str; 4] = ["name", "description", "seeds", "seed"];

/// One value of a swept key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweptValue {
    /// As TOML.
    pub literal: String,
    /// As people write it, a text without its quotes.
    pub text: String,
    /// Where it was written.
    pub origin: Origin,
}

/// A swept key with its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The dotted key.
    pub key: String,
    /// Its values, in their order.
    pub values: Vec<SweptValue>,
}

/// Which keys are swept, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// Whether the first values of all keys make a point, then the second; else each value goes with each.
    pub zip: bool,
    /// The swept keys in the order of the text; the last one moves fastest.
    pub axes: Vec<Axis>,
}

/// Swept keys and their values as texts, in the order of the sweep.
pub type Settings = Vec<(String, String)>;

/// A scenario for each point of a sweep, with the swept keys' values as texts.
#[derive(Clone, Debug, PartialEq)]
pub struct Swept {
    /// The sweep, without axes for a scenario that is one.
    pub sweep: Sweep,
    /// Its points, in order.
    pub points: Vec<(Settings, Scenario)>,
}

impl Axis {
    /// The key with its value at `index`.
    fn value(&self, index: usize) -> Option<(&str, &SweptValue)> {
        self.values.get(index).map(|value| (self.key.as_str(), value))
    }
}

impl Swept {
    /// Loads a built-in by its name or a file by its path, with overrides of the form `key=value`; an override of a
    /// swept key takes its place in the sweep.
    pub fn load(name: &str, overrides: &[String]) -> Result<Self, LoadError> {
        Rows::default().load(name, overrides)
    }

    /// Reads the scenarios from their text; `source` is what errors call it.
    pub fn parse(source: &str, text: &str, overrides: &[String]) -> Result<Self, ConfigErrors> {
        Self::of(&Source::new(source, text, overrides)?)
    }

    /// Reads the scenarios of a source.
    pub(super) fn of(source: &Source) -> Result<Self, ConfigErrors> {
        let mut table = source.table()?;
        let Some(swept) = table.remove("sweep") else {
            let scenario = Scenario::read_from(source, &table)?;
            return Ok(Self { sweep: Sweep::default(), points: vec![(Vec::new(), scenario)] });
        };
        let mut reader = Reader { source, axes: BTreeMap::new(), errors: Vec::new(), zip: false };
        let Some(axes) = swept.get_ref().as_table() else {
            reader.wrong_value("sweep", swept.span(), "a section of swept keys");
            return Err(ConfigErrors(reader.errors));
        };
        reader.table("", axes);
        let swept: Vec<String> = reader.axes.keys().cloned().collect();
        let sweep =
            reader.finish().map_err(|errors| with_others(errors, source, &table, &swept))?;
        let points = points(source, &sweep)?;
        Ok(Self { sweep, points })
    }
}

impl Rows {
    /// Loads a built-in by its name or a file by its path, as [`Swept::load`] does.
    ///
    /// ```
    /// # use lowmesh_congestion::timer::fixed::ROW as MINE;
    /// use lowmesh_lab::scenario::Rows;
    /// use lowmesh_registry::Registry;
    /// let rows = Rows { timers: Registry::builtin().with(&MINE), ..Rows::default() };
    /// let swept = rows.load("grid-25", &["coap.congestion=fixed".to_owned()])?;
    /// assert_eq!(swept.points[0].1.coap.congestion.name(), "fixed");
    /// # Ok::<(), lowmesh_lab::scenario::LoadError>(())
    /// ```
    pub fn load(&self, name: &str, overrides: &[String]) -> Result<Swept, LoadError> {
        let text = Text::find(name)?;
        let mut swept = self.read(name, &text.text, overrides)?;
        for (_, scenario) in &mut swept.points {
            scenario.settle(text.folder.as_deref());
        }
        Ok(swept)
    }

    /// Reads the scenarios of a text with overrides of the form `key=value`; `source` is what errors call it.
    pub fn read(
        &self,
        source: &str,
        text: &str,
        overrides: &[String],
    ) -> Result<Swept, ConfigErrors> {
        Swept::of(&Source::new(source, text, overrides)?.with_rows(self.clone()))
    }
}

/// Adds to the errors of a sweep those of the other sections, without what a swept value may correct.
fn with_others(
    errors: ConfigErrors,
    source: &Source,
    table: &DeTable<'_>,
    swept: &[String],
) -> ConfigErrors {
    let mut all = errors.0;
    let open = |error: &ConfigError| {
        let of_sweep = |other: &ConfigError| other.key == self::swept(&error.key);
        matches!(error.fault, Fault::Missing { .. } | Fault::Conflict(_))
            || swept.contains(&error.key)
            || all.iter().any(of_sweep)
    };
    let others = Scenario::read_from(source, table).err().map_or_else(Vec::new, |found| found.0);
    let others: Vec<ConfigError> = others.into_iter().filter(|error| !open(error)).collect();
    all.extend(others);
    all.sort_by(|a, b| (&a.origin, &a.key).cmp(&(&b.origin, &b.key)));
    ConfigErrors(all)
}

/// Reads the scenario of every point.
fn points(source: &Source, sweep: &Sweep) -> Result<Vec<(Settings, Scenario)>, ConfigErrors> {
    let mut points = Vec::new();
    // Each error with the settings of its first point, and the number of its points.
    let mut errors: Vec<(ConfigError, Settings, usize)> = Vec::new();
    let mut unused = Unused::default();
    let combinations = sweep.combinations();
    let count = combinations.len();
    for chosen in combinations {
        let mut source = source.clone();
        for (key, value) in &chosen {
            let SweptValue { literal, origin, .. } = value;
            source.lay(key, Laid { literal: literal.clone(), origin: origin.clone() });
        }
        let settings: Settings =
            chosen.iter().map(|(key, value)| ((*key).to_owned(), value.text.clone())).collect();
        match read_point(&mut source, &settings, &mut unused) {
            Ok(scenario) => points.push((settings, scenario)),
            // A value that is wrong at many points is reported once.
            Err(found) => {
                for error in found.0 {
                    // A key that does not exist is wrong once, whatever its values.
                    let of_key = matches!(
                        error.fault,
                        Fault::UnknownKey { .. }
                            | Fault::ForeignKey { .. }
                            | Fault::ForeignSection { .. }
                    );
                    let same = |other: &ConfigError| {
                        (&other.key, &other.fault) == (&error.key, &error.fault)
                            && (of_key || other.origin == error.origin)
                    };
                    match errors.iter_mut().find(|(other, ..)| same(other)) {
                        Some((.., points)) => *points += 1,
                        None => errors.push((error, settings.clone(), 1)),
                    }
                }
            }
        }
    }
    let errors = errors.into_iter();
    let errors = errors.map(|(error, first, points)| match points {
        points if points == count => error,
        points => at_points(error, &first, points),
    });
    let mut errors: Vec<ConfigError> = errors.collect();
    errors.extend(unused.everywhere(count));
    errors.sort_by(|a, b| (&a.origin, &a.key).cmp(&(&b.origin, &b.key)));
    if errors.is_empty() { Ok(points) } else { Err(ConfigErrors(errors)) }
}

/// Reads the scenario of one point, without flags for keys that only other values of a swept choice have.
fn read_point(
    source: &mut Source,
    settings: &[(String, String)],
    unused: &mut Unused,
) -> Result<Scenario, ConfigErrors> {
    let read = |source: &Source| {
        let mut table = source.table()?;
        table.remove("sweep");
        Scenario::read_from(source, &table)
    };
    let errors = match read(source) {
        Err(errors) => errors,
        scenario => return scenario,
    };
    let of_another_choice = |error: &ConfigError| {
        let choice = match (&error.origin, &error.fault) {
            (Origin::Flag(_), Fault::ForeignKey { choice, .. }) => choice,
            (Origin::Flag(_), Fault::ForeignSection { selector, .. }) => {
                return settings.iter().any(|(key, _)| key == selector);
            }
            _ => return false,
        };
        let (Some((section, _)), Some((name, _))) =
            (error.key.rsplit_once('.'), choice.split_once(" = "))
        else {
            return false;
        };
        settings.iter().any(|(key, _)| *key == format!("{section}.{name}"))
    };
    let mut left = false;
    for error in errors.0.iter().filter(|error| of_another_choice(error)) {
        if source.leave_out(&error.key) {
            unused.add(error);
            left = true;
        }
    }
    if left { read(source) } else { Err(errors) }
}

/// The removed flags, each with its error and the number of points without it.
#[derive(Default)]
struct Unused(BTreeMap<String, (ConfigError, usize)>);

impl Unused {
    fn add(&mut self, error: &ConfigError) {
        self.0.entry(error.key.clone()).or_insert_with(|| (error.clone(), 0)).1 += 1;
    }

    /// The errors of flags that apply to none of `points`.
    fn everywhere(self, points: usize) -> impl Iterator<Item = ConfigError> {
        self.0.into_values().filter(move |(_, count)| *count == points).map(|(error, _)| error)
    }
}

/// Says at which points two values do not go together.
fn at_points(mut error: ConfigError, first: &[(String, String)], points: usize) -> ConfigError {
    if let (Origin::Whole | Origin::Text(_), Fault::Conflict(message)) =
        (&error.origin, &mut error.fault)
    {
        let more = match points - 1 {
            0 => String::new(),
            1 => ", and at 1 more point".to_owned(),
            more => format!(", and at {more} more points"),
        };
        message.extend([" (at ", &describe(first), &more, ")"]);
    }
    error
}

/// The settings of a point in a line of text.
pub fn describe(settings: &[(String, String)]) -> String {
    let words: Vec<String> =
        settings.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    words.join(", ")
}

impl Sweep {
    /// The key and value of every axis, for each point.
    pub fn combinations(&self) -> Vec<Vec<(&str, &SweptValue)>> {
        // Where flags choose one value of every swept key, one point is left.
        if self.zip && !self.axes.is_empty() {
            let length = self.axes.first().map_or(0, |axis| axis.values.len());
            // The lists are of one length, or the sweep was refused.
            let at = |i| self.axes.iter().filter_map(move |axis| axis.value(i)).collect();
            return (0..length).map(at).collect();
        }
        let mut points: Vec<Vec<(&str, &SweptValue)>> = vec![Vec::new()];
        for axis in &self.axes {
            let longer = |point: &Vec<(_, _)>, value| {
                let mut point = point.clone();
                point.push((axis.key.as_str(), value));
                point
            };
            points = points
                .iter()
                .flat_map(|point| axis.values.iter().map(move |value| longer(point, value)))
                .collect();
        }
        points
    }

    /// The section as TOML; nothing without axes.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        if self.axes.is_empty() {
            return text;
        }
        text.push_str("\n[sweep]\n");
        if self.zip {
            text.push_str("zip = true\n");
        }
        for axis in &self.axes {
            let values: Vec<&str> =
                axis.values.iter().map(|value| value.literal.as_str()).collect();
            text.extend([&quoted(&axis.key), " = [", &values.join(", "), "]\n"]);
        }
        text
    }
}

/// A `[sweep]` while it is being read.
struct Reader<'s> {
    source: &'s Source,
    zip: bool,
    /// By key: where it stands in the text (flags last), and the axis.
    axes: BTreeMap<String, (usize, Axis)>,
    errors: Vec<ConfigError>,
}

impl Reader<'_> {
    /// Reads keys written dotted, or as sections within sections.
    fn table(&mut self, path: &str, table: &DeTable<'_>) {
        for (key, value) in table {
            let key: &str = key.get_ref();
            let dotted = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
            let span = value.span();
            match value.get_ref() {
                DeValue::Table(inner) => self.table(&dotted, inner),
                DeValue::Boolean(zip) if dotted == "zip" => self.zip = *zip,
                _ if dotted == "zip" => self.wrong_value("zip", span, "true or false"),
                _ if NEVER_SWEPT.contains(&dotted.as_str()) => {
                    let origin = self.source.origin(&swept(&dotted), span);
                    let why = "cannot be swept; every point has the same name and the same seeds";
                    self.errors.push(self.source.error(origin, &swept(&dotted), why));
                }
                written => self.axis(dotted, written, span),
            }
        }
    }

    fn axis(&mut self, key: String, written: &DeValue<'_>, span: std::ops::Range<usize>) {
        let path = swept(&key);
        let origin = |span| self.source.origin(&path, span);
        // A flag writes sections within sections, the text perhaps a dotted key: the flag stands.
        let flag = span.is_empty();
        if self.source.is_flag(&path) && !flag {
            return;
        }
        let values: Result<Vec<SweptValue>, String> = match written {
            DeValue::Array(list) if !list.is_empty() => list
                .iter()
                .map(|value| {
                    let read = SweptValue::read(value.get_ref(), origin(value.span()));
                    read.ok_or_else(|| ALLOWED.to_owned())
                })
                .collect(),
            DeValue::String(text) => match range::expand(text, POINTS_MAX) {
                Some(literals) => literals.map(|literals| {
                    let value = |literal: String| SweptValue::new(literal, origin(span.clone()));
                    literals.into_iter().map(value).collect()
                }),
                None => Ok(text
                    .split(',')
                    .map(|word| SweptValue::word(word.trim(), origin(span.clone())))
                    .collect()),
            },
            _ => Err(ALLOWED.to_owned()),
        };
        let values = match values {
            Ok(values) => values,
            Err(allowed) => return self.wrong_value(&key, span, &allowed),
        };
        if let Some(twice) = first_repeated(&values) {
            let why = format!("holds {} twice", twice.text);
            self.errors.push(self.source.error(twice.origin.clone(), &path, &why));
        }
        let place = if flag { usize::MAX } else { span.start };
        self.axes.insert(key.clone(), (place, Axis { key, values }));
    }

    fn wrong_value(&mut self, key: &str, span: std::ops::Range<usize>, allowed: &str) {
        let path = if key == "sweep" { key.to_owned() } else { swept(key) };
        self.errors.push(ConfigError {
            source: self.source.name.clone(),
            origin: self.source.origin(&path, span.clone()),
            fault: Fault::Value {
                found: self.source.literal(&path, span),
                allowed: allowed.to_owned(),
                similar: None,
            },
            key: path,
        });
    }

    fn finish(mut self) -> Result<Sweep, ConfigErrors> {
        // A flag for the key itself chooses one value: the key is swept no more.
        let mut axes: Vec<(usize, Axis)> = std::mem::take(&mut self.axes).into_values().collect();
        axes.retain(|(_, axis)| !self.source.is_flag(&axis.key));
        axes.sort_by_key(|(place, _)| *place);
        let sweep = Sweep { zip: self.zip, axes: axes.into_iter().map(|(_, axis)| axis).collect() };
        let lengths: Vec<usize> = sweep.axes.iter().map(|axis| axis.values.len()).collect();
        let mut whole = |key: &str, why: &str| {
            self.errors.push(self.source.error(Origin::Whole, key, why));
        };
        if sweep.zip && lengths.iter().any(|length| *length != lengths[0]) {
            let count = |axis: &Axis| format!("{} has {}", axis.key, axis.values.len());
            let counts: Vec<String> = sweep.axes.iter().map(count).collect();
            let why = format!("lists must have the same length: {}", counts.join(", "));
            whole("sweep.zip", &why);
        }
        let points = lengths.iter().try_fold(1_usize, |points, n| points.checked_mul(*n));
        if !sweep.zip && points.is_none_or(|points| points > POINTS_MAX) {
            whole("sweep", &format!("makes more than {POINTS_MAX} points"));
        }
        self.errors.sort_by(|a, b| (&a.origin, &a.key).cmp(&(&b.origin, &b.key)));
        if self.errors.is_empty() { Ok(sweep) } else { Err(ConfigErrors(self.errors)) }
    }
}

impl SweptValue {
    fn new(literal: String, origin: Origin) -> Self {
        let text = literal.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        Self { text: text.unwrap_or(&literal).to_owned(), literal, origin }
    }

    /// A value of a list; none for a section.
    fn read(value: &DeValue<'_>, origin: Origin) -> Option<Self> {
        let text = value.as_str().map(str::to_owned);
        let literal = literal(value)?;
        Some(Self { text: text.unwrap_or_else(|| literal.clone()), literal, origin })
    }

    /// A word as in a flag: a number, true or false, or a text without its quotes.
    fn word(word: &str, origin: Origin) -> Self {
        let plain =
            matches!(word, "true" | "false") || word.parse::<f64>().is_ok_and(f64::is_finite);
        let literal = if plain { word.to_owned() } else { quoted(word) };
        Self { text: word.to_owned(), literal, origin }
    }
}

/// A value as TOML; none for sections and dates, which no key takes.
fn literal(value: &DeValue<'_>) -> Option<String> {
    Some(match value {
        DeValue::String(text) => quoted(text),
        DeValue::Integer(number) => {
            i128::from_str_radix(number.as_str(), number.radix()).ok()?.to_string()
        }
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(boolean) => boolean.to_string(),
        DeValue::Array(list) => {
            let items: Option<Vec<String>> =
                list.iter().map(|item| literal(item.get_ref())).collect();
            format!("[{}]", items?.join(", "))
        }
        DeValue::Table(_) | DeValue::Datetime(_) => return None,
    })
}

fn swept(key: &str) -> String {
    format!("sweep.{key}")
}

fn first_repeated(values: &[SweptValue]) -> Option<&SweptValue> {
    let mut seen = std::collections::BTreeSet::new();
    values.iter().find(|value| !seen.insert(&value.literal))
}
