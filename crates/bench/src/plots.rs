//! Curves over sizes, and the roofline: pictures for the page.

use crate::results::Results;
use anyhow::{Result, anyhow};
use plotters::prelude::*;

/// Width and height of a picture.
const SIZE: (u32, u32) = (620, 400);

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

/// A curve with its name.
struct Curve {
    name: String,
    points: Vec<(f64, f64)>,
}

/// The least time of every function of a problem over the work of the primal, by tool; nothing where there is one size only.
pub(crate) fn scaling(results: &Results, problem: &str) -> Result<Option<String>> {
    let mut curves: Vec<Curve> = Vec::new();
    for row in results.rows.iter().filter(|r| r.problem == problem) {
        let Ok(times) = &row.outcome else { continue };
        let name = match results.tools.as_slice() {
            [_] => row.function.clone(),
            _ => format!("{}, {}", row.function, row.tool),
        };
        match curves.iter_mut().find(|c| c.name == name) {
            Some(c) => c.points.push((row.work, times.least)),
            None => curves.push(Curve { name, points: vec![(row.work, times.least)] }),
        }
    }
    for c in &mut curves {
        c.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    if curves.iter().all(|c| c.points.len() < 2) {
        return Ok(None);
    }
    picture(("operations of the function", "least time"), &curves, &power, &[]).map(Some)
}

/// What derivatives reach of the machine's rates with the first tool: sums and products per second over those per byte. Only what the
/// derivative cannot avoid is counted. Small problems stay in caches: they may be above the sloping part of the roof, which is memory.
pub(crate) fn roofline(results: &Results) -> Result<Option<String>> {
    let (flops, bytes) = results.rates;
    let Some((first, _)) = results.tools.first() else { return Ok(None) };
    let mut curves: Vec<Curve> = Vec::new();
    for row in results.rows.iter().filter(|r| r.is_derivative && r.least.0 > 0.0 && r.tool == *first) {
        let Ok(times) = &row.outcome else { continue };
        let point = (row.least.0 / row.least.1, row.least.0 / times.least);
        match curves.iter_mut().find(|c| c.name == row.problem) {
            Some(c) => c.points.push(point),
            None => curves.push(Curve { name: row.problem.clone(), points: vec![point] }),
        }
    }
    if curves.is_empty() {
        return Ok(None);
    }
    let xs: Vec<f64> = curves.iter().flat_map(|c| &c.points).map(|p| p.0).chain([flops / bytes]).collect();
    let (low, high) = bounds(&xs);
    let roof = [(low, low * bytes), (flops / bytes, flops), (high, flops)];
    let rate = |y: f64| format!("{} GFLOP/s", y / 1e9);
    picture(("sums and products per byte", "per second"), &curves, &rate, &roof).map(Some)
}

/// Powers of ten around the numbers.
fn bounds(xs: &[f64]) -> (f64, f64) {
    let least = xs.iter().copied().fold(f64::INFINITY, f64::min);
    let most = xs.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    (10f64.powf(least.log10().floor()), 10f64.powf((most.log10() * 1.000_001).ceil()).max(10.0 * least))
}

/// A power of ten of a second.
fn power(seconds: f64) -> String {
    let (unit, size) = match seconds * 1.000_001 {
        s if s < 1e-6 => ("ns", 1e-9),
        s if s < 1e-3 => ("µs", 1e-6),
        s if s < 1.0 => ("ms", 1e-3),
        _ => ("s", 1.0),
    };
    format!("{} {unit}", (1e3 * seconds / size).round() / 1e3)
}

fn picture(
    (x, y): (&str, &str),
    curves: &[Curve],
    label: &dyn Fn(f64) -> String,
    roof: &[(f64, f64)],
) -> Result<String> {
    let all = || curves.iter().flat_map(|c| c.points.iter()).chain(roof);
    let (x0, x1) = bounds(&all().map(|p| p.0).collect::<Vec<_>>());
    let (y0, y1) = bounds(&all().map(|p| p.1).collect::<Vec<_>>());
    let mut svg = String::new();
    let wrong = |e: &dyn std::fmt::Display| anyhow!("a picture cannot be drawn: {e}");
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        let mut chart = ChartBuilder::on(&root)
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(90)
            .build_cartesian_2d((x0..x1).log_scale(), (y0..y1).log_scale())
            .map_err(|e| wrong(&e))?;
        chart
            .configure_mesh()
            .x_desc(x)
            .y_desc(y)
            .x_label_formatter(&|x| format!("{x:e}"))
            .y_label_formatter(&|y| label(*y))
            .light_line_style(BLACK.mix(0.05))
            .bold_line_style(BLACK.mix(0.15))
            .draw()
            .map_err(|e| wrong(&e))?;
        if !roof.is_empty() {
            chart
                .draw_series(LineSeries::new(roof.iter().copied(), BLACK.stroke_width(2)))
                .map_err(|e| wrong(&e))?;
        }
        for (k, curve) in curves.iter().enumerate() {
            let colour = COLOURS[k % COLOURS.len()];
            // More curves than colours: later ones are thinner.
            let width = if k < COLOURS.len() { 2 } else { 1 };
            if roof.is_empty() {
                let line = LineSeries::new(curve.points.iter().copied(), colour.stroke_width(width));
                chart.draw_series(line).map_err(|e| wrong(&e))?;
            }
            let points = curve.points.iter().map(|p| Circle::new(*p, 4, colour.filled()));
            chart
                .draw_series(points)
                .map_err(|e| wrong(&e))?
                .label(&curve.name)
                .legend(move |(x, y)| Circle::new((x + 8, y), 4, colour.filled()));
        }
        chart
            .configure_series_labels()
            .position(if roof.is_empty() {
                SeriesLabelPosition::UpperLeft
            } else {
                SeriesLabelPosition::LowerRight
            })
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.2))
            .draw()
            .map_err(|e| wrong(&e))?;
        root.present().map_err(|e| wrong(&e))?;
    }
    Ok(svg)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_go_from_powers_of_ten_to_powers_of_ten() {
        assert_eq!(bounds(&[3.0, 250.0]), (1.0, 1000.0));
        assert_eq!(bounds(&[7.0]), (1.0, 70.0));
        assert_eq!([power(1e-5), power(1e-3), power(1e-9), power(10.0)], ["10 µs", "1 ms", "1 ns", "10 s"]);
    }
}
