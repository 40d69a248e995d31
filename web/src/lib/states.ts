import type { Sample } from './prometheus';

// How models of a server stand that loads and unloads several, by its metrics.

/** What the server's words for states mean. */
const words: Record<string, string> = { absent: 'not loaded', loading: 'loading', ready: 'ready', draining: 'unloading', failed: 'failed' };

/** A state in words; nothing where the server does not say. */
export function stateWord(state: string | undefined): string {
  return state === undefined ? '' : (words[state] ?? state);
}

/** How a model stands. */
export interface ModelStatus {
  name: string;
  state: string;
  requests: number;
  waiting: number;
  memory: number; // bytes of all devices
}

/** The memory of a device that models share, in bytes. */
export interface Reserve {
  device: string;
  used: number;
  limit: number;
}

/** The pages of a model's cache on the device by their state. */
export interface Pages {
  model: string;
  states: { state: string; share: number; count: number }[];
}

type Samples = Map<string, Sample[]>;

/** How all models stand, by name; none where the server does not say. */
export function statusesOf(samples: Samples): ModelStatus[] {
  const all = new Map<string, ModelStatus>();
  for (const { labels, value } of samples.get('realizar_model_state') ?? []) {
    const name = labels.model_name ?? '';
    const one = all.get(name) ?? { name, state: 'unknown', requests: 0, waiting: 0, memory: 0 };
    all.set(name, one);
    if (value === 1) one.state = labels.state ?? one.state;
  }
  const add = (metric: string, key: 'requests' | 'waiting' | 'memory') => {
    for (const { labels, value } of samples.get(metric) ?? []) {
      const one = all.get(labels.model_name ?? '');
      if (one) one[key] += value;
    }
  };
  add('realizar_model_requests', 'requests');
  add('realizar_model_waiting_requests', 'waiting');
  add('realizar_model_memory_bytes', 'memory');
  return [...all.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The memory that models share, by device. */
export function reservesOf(samples: Samples): Reserve[] {
  const used = byDevice(samples, 'realizar_models_memory_bytes');
  return [...byDevice(samples, 'realizar_models_memory_limit_bytes')].filter(([, limit]) => limit > 0).map(([device, limit]) => ({ device, used: used.get(device) ?? 0, limit }));
}

/** A number of each device, which several models may show. */
export function byDevice(samples: Samples, metric: string): Map<string, number> {
  return new Map((samples.get(metric) ?? []).map(({ labels, value }) => [labels.device ?? '', value]));
}

const pageStates = ['used', 'idle', 'empty'];

/** The pages of each model's cache, by the model's name. */
export function pagesOf(samples: Samples): Pages[] {
  const all = new Map<string, Map<string, number>>();
  for (const { labels, value } of samples.get('realizar_cache_pages') ?? []) {
    if (labels.place !== 'device') continue;
    const model = labels.model_name ?? '';
    const counts = all.get(model) ?? new Map<string, number>();
    all.set(model, counts.set(labels.state ?? '', (counts.get(labels.state ?? '') ?? 0) + value));
  }
  return [...all].sort(([a], [b]) => (a < b ? -1 : 1)).map(([model, counts]) => {
    const sum = pageStates.reduce((n, state) => n + (counts.get(state) ?? 0), 0);
    return { model, states: pageStates.map((state) => ({ state, count: counts.get(state) ?? 0, share: sum > 0 ? (counts.get(state) ?? 0) / sum : 0 })) };
  });
}

/** A counter by a label, of all models together. */
export function byLabel(samples: Samples, metric: string, label: string): Record<string, number> {
  const all = new Map<string, number>();
  for (const { labels, value } of samples.get(metric) ?? []) all.set(labels[label] ?? '', (all.get(labels[label] ?? '') ?? 0) + value);
  return Object.fromEntries(all);
}

/** What all samples of a metric have in a label, or NaN where they differ or there are none. */
export function common(samples: Samples, metric: string, label: string): number {
  const all = new Set((samples.get(metric) ?? []).map(({ labels }) => labels[label]));
  return all.size === 1 ? Number([...all][0] ?? NaN) : NaN;
}
