/** A line of Prometheus's text format: a value of a metric with these labels. */
export interface Sample {
  labels: Record<string, string>;
  value: number;
}

const line = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?[ \t]+(\S+)(?:[ \t]+-?\d+)?$/;
const label = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;
const escaped: Record<string, string> = { n: '\n', '"': '"', '\\': '\\' };

/** The samples of a page by the names of their metrics. */
export function parse(text: string): Map<string, Sample[]> {
  const all = new Map<string, Sample[]>();
  for (const row of text.split('\n')) {
    const match = row.startsWith('#') ? null : line.exec(row.trim());
    if (!match) continue;
    const labels: Record<string, string> = {};
    for (const [, name, value] of (match[2] ?? '').matchAll(label)) labels[name!] = value!.replace(/\\(.)/g, (whole, c: string) => escaped[c] ?? whole);
    const sample = { labels, value: numberOf(match[3]!) };
    const list = all.get(match[1]!);
    if (list) list.push(sample);
    else all.set(match[1]!, [sample]);
  }
  return all;
}

function numberOf(text: string): number {
  if (/^[+-]?inf$/i.test(text)) return text.startsWith('-') ? -Infinity : Infinity;
  return Number(text);
}
