//! Curves over sizes, the roofline, ratios: pictures for the page.

use crate::cliffs;
use crate::results::{Results, Row};
use anyhow::{Result, anyhow};
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

/// Width and height of a picture.
const SIZE: (u32, u32) = (620, 400);

/// Of one with many names.
const WIDE: (u32, u32) = (900, 560);

/// Colours that are told apart on white, the first seven also by people who see few of them (Okabe and Ito's palette).
const COLOURS: [RGBColor; 12] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(90, 90, 90),
    RGBColor(120, 60, 20),
    RGBColor(100, 50, 160),
    RGBColor(170, 190, 40),
    RGBColor(220, 30, 60),
    RGBColor(20, 60, 60),
];

/// Points of one name.
struct Curve {
    name: String,
    colour: RGBColor,
    line: Line,
    points: Vec<(f64, f64)>,
}

/// How the points of a curve are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    None,
    Whole,
    Dashed,
}

/// Where the names of curves stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Names {
    /// In the upper left corner, or in the lower right one if fewer points lie there.
    Corner,
    /// At their last points.
    Points,
    /// Nowhere: a picture beside this one has them.
    Beside,
}

/// What is drawn beside the curves, and what stands at the axes.
struct Frame<'a> {
    x: &'a str,
    y: &'a str,
    x_label: &'a dyn Fn(f64) -> String,
    y_label: &'a dyn Fn(f64) -> String,
    /// Lines behind the curves, with names that stand at their last points.
    behind: Vec<(String, Vec<(f64, f64)>)>,
    names: Names,
    size: (u32, u32),
}

/// The curves of a problem's series: for every function and tool, what `y` makes of work and least time. Functions have colours; the
/// first tool's lines are whole, those of others dashed.
fn over_sizes(results: &Results, problem: &str, along: &str, y: &dyn Fn(f64, f64) -> f64) -> Vec<Curve> {
    let mut functions: Vec<String> = Vec::new();
    let mut curves = Vec::new();
    for s in cliffs::series(results).into_iter().filter(|s| s.problem == problem && s.along == along) {
        if !functions.contains(&s.function) {
            functions.push(s.function.clone());
        }
        let k = functions.iter().position(|f| *f == s.function).unwrap_or_default();
        let is_first = results.tools.first().is_none_or(|(name, _)| *name == s.tool);
        let name = match results.tools.as_slice() {
            [_] => s.function,
            _ => format!("{}, {}", s.function, s.tool),
        };
        curves.push(Curve {
            name,
            colour: COLOURS[k % COLOURS.len()],
            line: if is_first { Line::Whole } else { Line::Dashed },
            points: s.sizes.iter().map(|size| (size.work, y(size.work, size.time))).collect(),
        });
    }
    curves
}

/// The least time of every function of a series over the work of the primal, by tool; nothing where there is one size only.
pub(crate) fn scaling(results: &Results, problem: &str, along: &str) -> Result<Option<String>> {
    let curves = over_sizes(results, problem, along, &|_, time| time);
    let frame = Frame {
        x: "operations of the function",
        y: "least time",
        x_label: &scientific,
        y_label: &power,
        behind: Vec::new(),
        names: Names::Corner,
        size: SIZE,
    };
    picture(&frame, &curves)
}

/// The same for one operation: level lines are cost in proportion to the work.
pub(crate) fn per_operation(results: &Results, problem: &str, along: &str) -> Result<Option<String>> {
    let curves = over_sizes(results, problem, along, &|work, time| time / work);
    let frame = Frame {
        x: "operations of the function",
        y: "least time for each",
        x_label: &scientific,
        y_label: &power,
        behind: Vec::new(),
        names: Names::Beside,
        size: SIZE,
    };
    picture(&frame, &curves)
}

/// What derivatives reach of the machine's rates with the first tool: sums and products per second over those per byte. Only what the
/// derivative cannot avoid is counted. What is small stays in a cache: each has a roof of its own.
pub(crate) fn roofline(results: &Results) -> Result<Option<String>> {
    let rates = &results.rates;
    let counted = |r: &&Row| r.least.0 > 0.0 && r.least.1 > 0.0;
    let place = |row: &Row, time: f64| (row.least.0 / row.least.1, row.least.0 / time);
    let curves = by_problem(results, &counted, &place);
    let edges = rates.bytes.iter().map(|(_, rate)| rates.flops / rate);
    let xs: Vec<f64> = curves.iter().flat_map(|c| &c.points).map(|p| p.0).chain(edges).collect();
    let (low, high) = bounds(&xs);
    let slope = |(size, rate): &(f64, f64)| {
        let name = format!("{:.0} GB/s, {}", rate / 1e9, bytes(*size));
        // It goes on a little above the roof, each farther than the next, so that names do not meet.
        let above = 1.35_f64.powi(rates.bytes.iter().filter(|(_, slower)| slower < rate).count() as i32);
        let end = above * rates.flops / rate;
        (name, vec![(low, low * rate), (end, end * rate)])
    };
    let mut behind: Vec<(String, Vec<(f64, f64)>)> = rates.bytes.iter().map(slope).collect();
    let mut level = |name: &str, rate: f64| {
        behind.push((name.to_string(), vec![(rate / rates.memory(), rate), (high / 2.0, rate)]));
    };
    level("f64", rates.flops);
    if results.rows.iter().any(|r| r.is_single) {
        level("f32", rates.single_flops);
    }
    let frame = Frame {
        x: "sums and products per byte",
        y: "per second",
        x_label: &scientific,
        y_label: &|y| format!("{} GFLOP/s", y / 1e9),
        behind,
        names: Names::Points,
        size: WIDE,
    };
    picture(&frame, &curves)
}

/// A version over sizes: its colour by number, and points.
pub(crate) struct Shown {
    pub(crate) name: String,
    pub(crate) colour: usize,
    pub(crate) is_dashed: bool,
    pub(crate) points: Vec<(f64, f64)>,
}

/// Seconds over numbers of independent variables. A line of slope 1 stands behind the curves, through the middle of the first.
pub(crate) fn over_variables(shown: &[Shown]) -> Result<Option<String>> {
    let curve = |s: &Shown| Curve {
        name: s.name.clone(),
        colour: COLOURS[s.colour % COLOURS.len()],
        line: if s.is_dashed { Line::Dashed } else { Line::Whole },
        points: s.points.clone(),
    };
    let Some(points) = shown.first().map(|s| &s.points) else { return Ok(None) };
    let (x, y) = points[points.len() / 2];
    let (from, to) = (points[0].0, points[points.len() - 1].0);
    let frame = Frame {
        x: "independent variables",
        y: "time",
        x_label: &scientific,
        y_label: &power,
        behind: vec![("slope 1".to_string(), vec![(from, y * from / x), (to, y * to / x)])],
        names: Names::Corner,
        size: WIDE,
    };
    picture(&frame, &shown.iter().map(curve).collect::<Vec<_>>())
}

/// Derivatives over their functions, with the first tool: how many times as long they take.
pub(crate) fn ratios(results: &Results) -> Result<Option<String>> {
    let primal = |row: &Row| results.primal_of(row).map_or(f64::NAN, |t| t.least);
    let place = |row: &Row, time: f64| (primal(row), time / primal(row));
    let curves = by_problem(results, &|r| primal(r).is_finite(), &place);
    let frame = Frame {
        x: "least time of the function",
        y: "time of the derivative / time of the function",
        x_label: &power,
        y_label: &|y| format!("{y}"),
        behind: Vec::new(),
        names: Names::Points,
        size: WIDE,
    };
    picture(&frame, &curves)
}

/// How many times as fast derivatives are with the second tool as with the first, where both are ours with other numbers of threads.
pub(crate) fn speedups(results: &Results) -> Result<Option<String>> {
    let [(one, _), (two, _), ..] = results.tools.as_slice() else { return Ok(None) };
    if !two.ends_with("threads") {
        return Ok(None);
    }
    let same = |a: &Row, b: &Row| {
        (&a.problem, &a.series, &a.workload, &a.function) == (&b.problem, &b.series, &b.workload, &b.function)
    };
    let other = |row: &Row| {
        let found = results.rows.iter().find(|r| r.tool == *two && same(r, row));
        found.and_then(|r| r.outcome.as_ref().ok()).map_or(f64::NAN, |t| t.least)
    };
    let place = |row: &Row, time: f64| (time, time / other(row));
    let curves = by_problem(results, &|r| other(r).is_finite(), &place);
    let frame = Frame {
        x: &format!("least time with {one}"),
        y: &format!("times as fast with {two}"),
        x_label: &power,
        y_label: &|y| format!("{y:.1}"),
        behind: Vec::new(),
        names: Names::Points,
        size: WIDE,
    };
    let most = curves.iter().flat_map(|c| &c.points).map(|p| p.1).fold(2.0, f64::max);
    drawn(&frame, &curves, 0.0..most * 1.1)
}

/// Points of derivatives with the first tool, a colour for each problem.
fn by_problem(
    results: &Results,
    wanted: &dyn Fn(&&Row) -> bool,
    place: &dyn Fn(&Row, f64) -> (f64, f64),
) -> Vec<Curve> {
    let Some((first, _)) = results.tools.first() else { return Vec::new() };
    let mut curves: Vec<Curve> = Vec::new();
    for row in results.rows.iter().filter(|r| r.is_derivative && r.tool == *first).filter(wanted) {
        let Ok(times) = &row.outcome else { continue };
        let point = place(row, times.least);
        let count = curves.len();
        match curves.iter_mut().find(|c| c.name == row.problem) {
            Some(c) => c.points.push(point),
            None => curves.push(Curve {
                name: row.problem.clone(),
                colour: COLOURS[count % COLOURS.len()],
                line: Line::None,
                points: vec![point],
            }),
        }
    }
    curves.iter_mut().for_each(|c| c.points.sort_by(|a, b| a.0.total_cmp(&b.0)));
    curves
}

/// Powers of ten around the numbers.
fn bounds(xs: &[f64]) -> (f64, f64) {
    let least = xs.iter().copied().fold(f64::INFINITY, f64::min);
    let most = xs.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    (10f64.powf(least.log10().floor()), 10f64.powf((most.log10() * 1.000_001).ceil()).max(10.0 * least))
}

/// A number of bytes, roughly.
pub(crate) fn bytes(size: f64) -> String {
    match size {
        s if s < 1e6 => format!("{:.0} kB", s / 1e3),
        s => format!("{:.0} MB", s / 1e6),
    }
}

/// A power of ten.
fn scientific(x: f64) -> String {
    format!("{x:e}")
}

/// A power of ten of a second.
fn power(seconds: f64) -> String {
    let (unit, size) = match seconds * 1.000_001 {
        s if s < 1e-9 => ("ps", 1e-12),
        s if s < 1e-6 => ("ns", 1e-9),
        s if s < 1e-3 => ("µs", 1e-6),
        s if s < 1.0 => ("ms", 1e-3),
        _ => ("s", 1.0),
    };
    format!("{} {unit}", (1e3 * seconds / size).round() / 1e3)
}

/// Whether fewer points lie in the lower right corner of a picture with two logarithmic axes than in the upper left one.
fn is_free_below(curves: &[Curve]) -> bool {
    let points: Vec<(f64, f64)> = curves.iter().flat_map(|c| &c.points).copied().collect();
    let part = |x: f64, all: &[f64]| {
        let (low, high) = bounds(all);
        (x / low).ln() / (high / low).ln()
    };
    let (xs, ys): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
    let places = points.iter().map(|(x, y)| (part(*x, &xs), part(*y, &ys)));
    let above = places.clone().filter(|(x, y)| *x < 0.4 && *y > 0.5).count();
    places.filter(|(x, y)| *x > 0.6 && *y < 0.5).count() < above
}

/// Curves on two logarithmic axes; nothing where there are none.
fn picture(frame: &Frame<'_>, curves: &[Curve]) -> Result<Option<String>> {
    let behind = || frame.behind.iter().flat_map(|(_, line)| line);
    let ys: Vec<f64> = curves.iter().flat_map(|c| c.points.iter()).chain(behind()).map(|p| p.1).collect();
    let (low, high) = bounds(&ys);
    drawn(frame, curves, (low..high).log_scale())
}

/// Curves over a logarithmic axis.
fn drawn<Y>(frame: &Frame<'_>, curves: &[Curve], y: Y) -> Result<Option<String>>
where
    Y: AsRangedCoord<Value = f64>,
    Y::CoordDescType: ValueFormatter<f64>,
{
    if curves.is_empty() {
        return Ok(None);
    }
    let behind = frame.behind.iter().flat_map(|(_, line)| line);
    let all: Vec<f64> = curves.iter().flat_map(|c| c.points.iter()).chain(behind).map(|p| p.0).collect();
    let (x0, x1) = bounds(&all);
    let mut svg = String::new();
    let wrong = |e: &dyn std::fmt::Display| anyhow!("a picture cannot be drawn: {e}");
    {
        let root = SVGBackend::with_string(&mut svg, frame.size).into_drawing_area();
        let mut chart = ChartBuilder::on(&root)
            .margin(12)
            // Names at the last points, and at the axis, stand out.
            .margin_top(24)
            .margin_right(48)
            .x_label_area_size(40)
            .y_label_area_size(90)
            .build_cartesian_2d((x0..x1).log_scale(), y)
            .map_err(|e| wrong(&e))?;
        chart
            .configure_mesh()
            .x_desc(frame.x)
            .y_desc(frame.y)
            .x_label_formatter(&|x| (frame.x_label)(*x))
            .y_label_formatter(&|y| (frame.y_label)(*y))
            .light_line_style(BLACK.mix(0.05))
            .bold_line_style(BLACK.mix(0.15))
            .draw()
            .map_err(|e| wrong(&e))?;
        for (name, line) in &frame.behind {
            let drawn = LineSeries::new(line.iter().copied(), BLACK.mix(0.6).stroke_width(2));
            chart.draw_series(drawn).map_err(|e| wrong(&e))?;
            let grey = BLACK.mix(0.6);
            let style = TextStyle::from(("sans-serif", 12)).color(&grey);
            let beside =
                |p: &(f64, f64)| EmptyElement::at(*p) + Text::new(name.clone(), (4, -16), style.clone());
            chart.draw_series(line.last().map(beside)).map_err(|e| wrong(&e))?;
        }
        for curve in curves {
            let Curve { colour, line, .. } = *curve;
            let (points, style) = (curve.points.iter().copied(), colour.stroke_width(2));
            match line {
                Line::None => {}
                Line::Whole => {
                    chart.draw_series(LineSeries::new(points, style)).map_err(|e| wrong(&e))?;
                }
                Line::Dashed => {
                    chart.draw_series(DashedLineSeries::new(points, 5, 4, style)).map_err(|e| wrong(&e))?;
                }
            }
            let mark = if line == Line::Dashed { style } else { colour.filled() };
            chart
                .draw_series(curve.points.iter().map(|p| Circle::new(*p, 4, mark)))
                .map_err(|e| wrong(&e))?
                .label(&curve.name)
                .legend(move |(x, y)| Circle::new((x + 8, y), 4, mark));
            let beside = |p: &(f64, f64)| {
                let style = TextStyle::from(("sans-serif", 13)).color(&colour);
                EmptyElement::at(*p) + Text::new(curve.name.clone(), (7, -7), style)
            };
            let name = curve.points.last().filter(|_| frame.names == Names::Points).map(beside);
            chart.draw_series(name).map_err(|e| wrong(&e))?;
        }
        if frame.names == Names::Corner {
            chart
                .configure_series_labels()
                .position(if is_free_below(curves) {
                    SeriesLabelPosition::LowerRight
                } else {
                    SeriesLabelPosition::UpperLeft
                })
                .background_style(WHITE.mix(0.85))
                .border_style(BLACK.mix(0.2))
                .draw()
                .map_err(|e| wrong(&e))?;
        }
        root.present().map_err(|e| wrong(&e))?;
    }
    Ok(Some(svg))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_where_fewer_points_are() {
        let curve = |points: &[(f64, f64)]| Curve {
            name: String::new(),
            colour: BLACK,
            line: Line::Whole,
            points: points.to_vec(),
        };
        assert!(!is_free_below(&[curve(&[(1e3, 1.0), (2e5, 90.0)])]));
        assert!(is_free_below(&[curve(&[(1.5e3, 1.5), (2e3, 80.0), (2e5, 90.0)])]));
    }

    #[test]
    fn axes_go_from_powers_of_ten_to_powers_of_ten() {
        assert_eq!(bounds(&[3.0, 250.0]), (1.0, 1000.0));
        assert_eq!(bounds(&[7.0]), (1.0, 70.0));
        assert_eq!([power(1e-5), power(1e-3), power(1e-9), power(10.0)], ["10 µs", "1 ms", "1 ns", "10 s"]);
    }
}
