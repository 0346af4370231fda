//! The decode table: how long a step takes by batch and context.

use super::table::DecodePoint;
use super::{ProfileError, check};

/// Steps by batch, at one context length.
#[derive(Clone, Debug)]
struct Curve {
    context: f64,
    /// Batch and milliseconds, ascending from batch 1.
    points: Vec<(f64, f64)>,
}

/// A checked table: at least one curve, each with at least the point of batch 1.
#[derive(Clone, Debug)]
pub struct DecodeTable(Vec<Curve>);

impl DecodeTable {
    /// Checks the points.
    pub fn new(points: &[DecodePoint]) -> Result<Self, ProfileError> {
        check(
            !points.is_empty(),
            "decode",
            "empty",
            "it needs at least the point of batch 1",
        )?;
        let mut curves: Vec<Curve> = Vec::new();
        for point in points {
            let step = point.step_ms;
            check(
                step > 0.0 && step.is_finite(),
                "decode.step_ms",
                step,
                "it must be above 0",
            )?;
            #[expect(clippy::cast_precision_loss, reason = "contexts are far below 2^53")]
            let context = point.context as f64;
            let batch = f64::from(point.batch);
            match curves.last_mut() {
                Some(curve) if curve.context == context => {
                    let (before, step_before) = curve.points[curve.points.len() - 1];
                    check(
                        batch > before,
                        "decode.batch",
                        point.batch,
                        "batches must ascend from 1",
                    )?;
                    check(
                        step >= step_before,
                        "decode.step_ms",
                        step,
                        "a larger batch cannot have a shorter step",
                    )?;
                    curve.points.push((batch, step));
                }
                last => {
                    check(
                        last.is_none_or(|curve| curve.context < context),
                        "decode.context",
                        point.context,
                        "contexts must ascend, and the points of one context stand together",
                    )?;
                    check(
                        point.batch == 1,
                        "decode.batch",
                        point.batch,
                        "the first point must be batch 1",
                    )?;
                    curves.push(Curve {
                        context,
                        points: vec![(batch, step)],
                    });
                }
            }
        }
        Ok(Self(curves))
    }

    /// Milliseconds of a step.
    pub fn step_ms(&self, batch: f64, context: f64) -> f64 {
        let curves = &self.0;
        let after = curves.partition_point(|curve| curve.context < context);
        if after == 0 || curves.len() == 1 {
            // No shorter than the shortest: what is left is the cost of the weights.
            return curves[0].step_ms(batch);
        }
        let high = &curves[after.min(curves.len() - 1)];
        let low = &curves[after.min(curves.len() - 1) - 1];
        let (a, b) = (low.step_ms(batch), high.step_ms(batch));
        let along = (context - low.context) / (high.context - low.context);
        if along <= 1.0 {
            a + (b - a) * along
        } else {
            // Curves of different batches may cross beyond their points; steps never get shorter.
            b + (b - a).max(0.0) * (along - 1.0)
        }
    }
}

impl Curve {
    fn step_ms(&self, batch: f64) -> f64 {
        let points = &self.points;
        let after = points.partition_point(|(b, _)| *b < batch);
        if after == 0 || points.len() == 1 {
            return points[0].1;
        }
        let (high, low) = (
            points[after.min(points.len() - 1)],
            points[after.min(points.len() - 1) - 1],
        );
        low.1 + (high.1 - low.1) * (batch - low.0) / (high.0 - low.0)
    }
}
