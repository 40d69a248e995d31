import type { Sample } from './prometheus';

/** How many values are up to each bound, the bounds ascending, the last one infinite. */
export type Histogram = { bound: number; below: number }[];

/** The histogram of the samples of its buckets, those of unlike labels together. */
export function histogramOf(buckets: Sample[]): Histogram {
  const below = new Map<number, number>();
  for (const { labels, value } of buckets) {
    const bound = labels.le === '+Inf' ? Infinity : Number(labels.le);
    below.set(bound, (below.get(bound) ?? 0) + value);
  }
  return [...below].map(([bound, below]) => ({ bound, below })).sort((a, b) => a.bound - b.bound);
}

/** What came to a histogram since it was as before. */
export function since(now: Histogram, before: Histogram): Histogram {
  if (now.length !== before.length) return now;
  const grown = now.map(({ bound, below }, i) => ({ bound, below: below - before[i]!.below }));
  return grown.some(({ below }) => below < 0) ? now : grown; // the server began anew
}

export function countOf(histogram: Histogram): number {
  return histogram.at(-1)?.below ?? 0;
}

/** The value that so many of all do not exceed, as `realizar top` has it: values lie evenly
 * within a bucket. NaN where there are none. */
export function quantile(histogram: Histogram, share: number): number {
  const rank = countOf(histogram) * share;
  if (rank === 0) return NaN;
  let low = 0;
  let before = 0;
  for (const { bound, below } of histogram) {
    if (below > before && below >= rank) return bound === Infinity ? low : low + ((bound - low) * (rank - before)) / (below - before);
    if (bound !== Infinity) low = bound;
    before = below;
  }
  return low;
}
