import { ask } from './api';
import { type Histogram, countOf, histogramOf, quantile, since } from './histogram';
import { parse, type Sample } from './prometheus';
import { byDevice, byLabel, common, type ModelStatus, type Pages, pagesOf, type Reserve, reservesOf, statusesOf } from './states';

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
  pages: Pages[] = $state.raw([]);
  models: ModelStatus[] = $state.raw([]);
  reserves: Reserve[] = $state.raw([]);
  totals = $state.raw({ prompt: 0, answers: 0, ended: {} as Record<string, number>, pageTokens: 0, connections: 0, heldBytes: 0, preempted: 0, proposed: 0, accepted: 0 });
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

  /** Reads at once. */
  async read(): Promise<void> {
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
      cache: now.samples.get('vllm:kv_cache_usage_perc')?.reduce((most, one) => Math.max(most, one.value), 0) ?? NaN,
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
    const free = byDevice(now.samples, 'realizar_device_memory_free_bytes');
    this.memory = [...byDevice(now.samples, 'realizar_device_memory_total_bytes')].map(([device, total]) => ({ device, total, free: free.get(device) ?? NaN }));
    this.pages = pagesOf(now.samples);
    this.models = statusesOf(now.samples);
    this.reserves = reservesOf(now.samples);
    this.totals = {
      prompt: sum(now, 'vllm:prompt_tokens_total'),
      answers: sum(now, 'vllm:generation_tokens_total'),
      ended: byLabel(now.samples, 'vllm:request_success_total', 'finished_reason'),
      pageTokens: common(now.samples, 'vllm:cache_config_info', 'block_size'),
      connections: sum(now, 'realizar_connections_open'),
      heldBytes: sum(now, 'realizar_request_memory_bytes'),
      preempted: sum(now, 'vllm:num_preemptions_total'),
      proposed: sum(now, 'vllm:spec_decode_num_draft_tokens_total'),
      accepted: sum(now, 'vllm:spec_decode_num_accepted_tokens_total'),
    };
  }
}
