//! The division of numbered rows into blocks.

use std::ops::RangeInclusive;

/// The rows of a block. The newest rows, fewer than these, are never indexed but scanned.
pub(crate) const ROWS: i64 = 4096;

/// Returns the block of a row. Rows are numbered from 1, blocks from 0.
pub(crate) fn block_of(number: i64) -> i64 {
    (number - 1).div_euclid(ROWS)
}

/// Returns the numbers of the rows of a block.
pub(crate) fn numbers_of(block: i64) -> RangeInclusive<i64> {
    block * ROWS + 1..=(block + 1) * ROWS
}

/// Returns the first block all of whose rows have at least the number `first`.
pub(crate) fn first_whole_block(first: i64) -> i64 {
    block_of(first + ROWS - 1)
}

/// Returns the numbers of the rows of a block that are in `range`.
pub(crate) fn part_of(block: i64, range: &RangeInclusive<i64>) -> RangeInclusive<i64> {
    let numbers = numbers_of(block);
    *numbers.start().max(range.start())..=*numbers.end().min(range.end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_divided_without_a_gap() {
        assert_eq!((block_of(1), block_of(ROWS), block_of(ROWS + 1)), (0, 0, 1));
        for block in [0, 1, 7] {
            let numbers = numbers_of(block);
            assert_eq!((block_of(*numbers.start()), block_of(*numbers.end())), (block, block));
            assert_eq!(*numbers_of(block + 1).start(), numbers.end() + 1);
        }
    }

    #[test]
    fn a_block_is_whole_if_its_first_row_is_kept() {
        for (first, block) in [(1, 0), (2, 1), (ROWS, 1), (ROWS + 1, 1), (ROWS + 2, 2)] {
            assert_eq!(first_whole_block(first), block, "{first}");
        }
    }

    #[test]
    fn a_part_of_a_block_is_in_both() {
        assert_eq!(part_of(0, &(5..=9)), 5..=9);
        assert_eq!(part_of(1, &(5..=5000)), ROWS + 1..=5000);
        assert!(part_of(2, &(5..=5000)).is_empty());
    }
}
