//! The work of a request of `latscope as schbench`. It is here because this package is never compiled for size: the
//! static binary took four times as long for it as schbench's own loop, and now takes 0.87 times as long.

use std::hint::black_box;

/// Set of three square matrices, one of which becomes the product of the others.
#[derive(Debug)]
pub struct Matrices {
    size: usize,
    factors: [Vec<u64>; 2],
    product: Vec<u64>,
}

impl Matrices {
    /// Makes matrices of so many KiB together.
    pub fn of_footprint(footprint: u64) -> Matrices {
        let size = ((footprint * 1024 / 3 / 8) as f64).sqrt() as usize;
        let numbers = || (0..(size * size) as u64).collect();
        Matrices { size, factors: [numbers(), numbers()], product: vec![0; size * size] }
    }

    /// Multiplies so many times.
    pub fn multiply(&mut self, times: u64) {
        let [left, right] = &self.factors;
        for _ in 0..times {
            for row in 0..self.size {
                let left = &left[row * self.size..][..self.size];
                for column in 0..self.size {
                    // Iterators need no checks of bounds, which took a third of the time.
                    let pairs = left.iter().zip(right[column..].iter().step_by(self.size));
                    let sum = pairs.fold(0_u64, |sum, (a, b)| sum.wrapping_add(a.wrapping_mul(*b)));
                    self.product[row * self.size + column] = sum;
                }
            }
            black_box(&mut self.product);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_is_not_compiled_for_size() {
        let fast = format!("[profile.dist.package.{}]\nopt-level = 3", env!("CARGO_PKG_NAME"));
        assert!(include_str!("../../../Cargo.toml").contains(&fast));
    }

    #[test]
    fn a_product_is_that_of_the_factors() {
        let mut matrices = Matrices::of_footprint(1);
        assert_eq!(matrices.size, 6);
        matrices.multiply(1);
        // Row 0 times column 0: the sum of i · 6i for i below 6.
        assert_eq!(matrices.product[0], 6 * (1 + 4 + 9 + 16 + 25));
    }
}
