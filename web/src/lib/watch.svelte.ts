import { ask } from './api';
import { type Histogram, countOf, histogramOf, quantile, since } from './histogram';
import { parse, type Sample } from './prometheus';

// The server's metrics, read again and again: rates, shares and percentiles, as
// `realizar top` has them.

const every = 1000; // milliseconds
const kept = 120; // points of a line
const window = 30; // points that percentiles are of

/** The figures of one moment. What is not known is NaN. */
export interface Point {
  running: number;
  waiting: number;
  cache: number;
  hits: number;
  busy: number;
  answered: number;
  prompt: number;
  requests: number;
}

export interface Latency {
  name: string;
  help: string;
  count: number;
  p50: number;
  p90: number;
  p99: number;
}

interface Memory {
  device: string;
  free: number;
  total: number;
}

/** What is read once. */
interface Reading {
  time: number;
  samples: Map<string, Sample[]>;
  latencies: Histogram[];
}

const latencies = [
  ['vllm:request_queue_time_seconds', 'Queue', 'from the request to its first step'],
  ['vllm:time_to_first_token_seconds', 'First token', 'from the request to the first token'],
  ['vllm:inter_token_latency_seconds', 'Between tokens', 'from one token to the next'],
  ['vllm:e2e_request_latency_seconds', 'Whole answer', 'from the request to the end'],
] as const;

export class Watch {
  points: Point[] = $state.raw([]);
  latencies: Latency[] = $state.raw([]);
  memory: Memory[] = $state.raw([]);
  pages: { state: string; share: number; count: number }[] = $state.raw([]);
  totals = $state.raw({ prompt: 0, answers: 0, ended: {} as Record<string, number>, pageTokens: 0, connections: 0, heldBytes: 0, preempted: 0 });
  fault: string | null = $state(null);
  private readings: Reading[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;

  /** Reads from now on, until what it returns is called. */
  start(): () => void {
    let ended = false;
    const next = async () => {
      if (!document.hidden) await this.read();
      if (!ended) this.timer = setTimeout(() => void next(), every);
    };
    void next();
    return () => {
      ended = true;
      clearTimeout(this.timer);
    };
  }

  private async read(): Promise<void> {
    try {
      const samples = parse(await (await ask('/metrics')).text());
      this.note({ time: performance.now(), samples, latencies: latencies.map(([name]) => histogramOf(samples.get(name + '_bucket') ?? [])) });
      this.fault = null;
    } catch (error) {
      this.fault = (error as Error).message;
    }
  }

  private note(now: Reading): void {
    const before = this.readings.at(-1);
    this.readings = [...this.readings, now].slice(-window);
    const sum = (reading: Reading, name: string) => reading.samples.get(name)?.reduce((all, one) => all + one.value, 0) ?? NaN;
    const grown = (name: string) => (before ? Math.max(0, sum(now, name) - sum(before, name)) : NaN);
    const seconds = before ? (now.time - before.time) / 1000 : NaN;
    const asked = grown('vllm:prefix_cache_queries_total');
    const point: Point = {
      running: sum(now, 'vllm:num_requests_running'),
      waiting: sum(now, 'vllm:num_requests_waiting'),
      cache: sum(now, 'vllm:kv_cache_usage_perc'),
      hits: asked > 0 ? grown('vllm:prefix_cache_hits_total') / asked : NaN,
      busy: Math.min(1, grown('realizar_step_seconds_total') / seconds),
      answered: grown('vllm:generation_tokens_total') / seconds,
      prompt: grown('vllm:prompt_tokens_total') / seconds,
      requests: grown('vllm:request_success_total') / seconds,
    };
    this.points = [...this.points, point].slice(-kept);
    const first = this.readings[0]!;
    this.latencies = latencies.map(([, name, help], i) => {
      const recent = since(now.latencies[i]!, first.latencies[i]!);
      const histogram = countOf(recent) > 0 ? recent : now.latencies[i]!; // or all, where nothing happens
      return { name, help, count: countOf(histogram), p50: quantile(histogram, 0.5), p90: quantile(histogram, 0.9), p99: quantile(histogram, 0.99) };
    });
    this.memory = (now.samples.get('realizar_device_memory_total_bytes') ?? []).map(({ labels, value }, i) => ({
      device: labels.device ?? '', total: value, free: now.samples.get('realizar_device_memory_free_bytes')?.[i]?.value ?? NaN,
    }));
    this.pages = pagesOf(now.samples.get('realizar_cache_pages') ?? []);
    this.totals = {
      prompt: sum(now, 'vllm:prompt_tokens_total'),
      answers: sum(now, 'vllm:generation_tokens_total'),
      ended: Object.fromEntries((now.samples.get('vllm:request_success_total') ?? []).map(({ labels, value }) => [labels.finished_reason ?? '', value])),
      pageTokens: Number(now.samples.get('vllm:cache_config_info')?.[0]?.labels.block_size ?? NaN),
      connections: sum(now, 'realizar_connections_open'),
      heldBytes: sum(now, 'realizar_request_memory_bytes'),
      preempted: sum(now, 'vllm:num_preemptions_total'),
    };
  }
}

const states = ['used', 'idle', 'empty'];

/** The pages of the device by their state. */
function pagesOf(samples: Sample[]): { state: string; share: number; count: number }[] {
  const counts = states.map((state) => samples.filter(({ labels }) => labels.place === 'device' && labels.state === state).reduce((all, one) => all + one.value, 0));
  const all = counts.reduce((a, b) => a + b, 0);
  return states.map((state, i) => ({ state, count: counts[i]!, share: all > 0 ? counts[i]! / all : 0 }));
}
