const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const one = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });
const two = new Intl.NumberFormat('en', { maximumSignificantDigits: 2 });

/** A number with as many digits as it is worth. */
export function amount(value: number): string {
  if (!Number.isFinite(value)) return '–';
  const size = Math.abs(value);
  return size >= 100 ? whole.format(value) : size >= 10 ? one.format(value) : two.format(value);
}

export function count(value: number): string {
  return whole.format(value);
}

/** Milliseconds as people say them. */
export function duration(ms: number): string {
  if (!Number.isFinite(ms)) return '–';
  if (ms < 1000) return `${amount(ms)} ms`;
  return ms < 60_000 ? `${amount(ms / 1000)} s` : `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

export function bytes(value: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${amount(value)} ${units[unit]}`;
}

export function percent(share: number): string {
  if (!Number.isFinite(share)) return '–';
  return share > 0 && share < 0.0001 ? '< 0.01%' : `${amount(share * 100)}%`;
}

/** When something was, as briefly as it is clear. */
export function day(time: number): string {
  const date = new Date(time);
  const today = new Date();
  if (date.toDateString() === today.toDateString()) return date.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });
  const sameYear = date.getFullYear() === today.getFullYear();
  return date.toLocaleDateString([], sameYear ? { month: 'short', day: 'numeric' } : { year: 'numeric', month: 'short', day: 'numeric' });
}
