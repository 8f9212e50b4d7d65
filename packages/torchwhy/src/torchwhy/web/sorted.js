// @ts-check
// Searches in ascending numbers.

/**
 * The first place in [low, high) whose value is `wanted` or more; `high` if no such place exists.
 * @param {ArrayLike<number>} values
 * @param {number} low
 * @param {number} high
 * @param {number} wanted
 * @returns {number}
 */
export function lowerBound(values, low, high, wanted) {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * The same where the place is expected near `low`: in steps that double.
 * @param {ArrayLike<number>} values
 * @param {number} low
 * @param {number} high
 * @param {number} wanted
 * @returns {number}
 */
export function gallop(values, low, high, wanted) {
  let step = 1;
  while (low + step < high && values[low + step] < wanted) {
    low += step;
    step *= 2;
  }
  return lowerBound(values, low, Math.min(high, low + step + 1), wanted);
}
