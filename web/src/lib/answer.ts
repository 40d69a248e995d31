import { APIError, ask } from './api';
import { events } from './events';
import type { Call, Figures, Message, Token } from './types';

interface Chunk {
  error?: { message: string; code: string | null; param: string | null };
  choices?: {
    delta?: { content?: string | null; reasoning_content?: string | null; tool_calls?: CallDelta[] };
    finish_reason?: string | null;
    logprobs?: { content?: TokenDelta[] | null } | null;
  }[];
  usage?: { prompt_tokens: number; completion_tokens: number; prompt_tokens_details?: { cached_tokens?: number } } | null;
  timings?: { choices?: { queue_ms: number; prefill_ms: number; decode_ms: number }[] };
}

interface CallDelta {
  index: number;
  id?: string;
  function?: { name?: string; arguments?: string };
}

interface TokenDelta {
  token: string;
  logprob: number;
  top_logprobs?: { token: string; logprob: number }[];
}

/** What an answer goes on with: the fields of a message that it changes. */
export type Progress = Partial<Pick<Message, 'text' | 'reasoning' | 'calls' | 'tokens' | 'figures' | 'finish'>>;

/** An answer that grows. */
class Answer {
  text = '';
  reasoning = '';
  calls: Call[] = [];
  tokens: Token[] = [];
  finish = '';
  figures: Figures = {};
  private readonly begun = performance.now();

  add(chunk: Chunk): void {
    if (chunk.error) throw new APIError(200, chunk.error.code, chunk.error.param, chunk.error.message);
    for (const choice of chunk.choices ?? []) {
      const delta = choice.delta ?? {};
      if (delta.content || delta.reasoning_content || delta.tool_calls?.length) this.figures.first ??= performance.now() - this.begun;
      this.text += delta.content ?? '';
      this.reasoning += delta.reasoning_content ?? '';
      for (const call of delta.tool_calls ?? []) this.addCall(call);
      for (const token of choice.logprobs?.content ?? []) this.tokens.push(tokenOf(token));
      if (choice.finish_reason) this.finish = choice.finish_reason;
    }
    if (chunk.usage) {
      this.figures.prompt = chunk.usage.prompt_tokens;
      this.figures.answer = chunk.usage.completion_tokens;
      this.figures.cached = chunk.usage.prompt_tokens_details?.cached_tokens ?? 0;
    }
    const times = chunk.timings?.choices?.[0];
    if (times) this.figures.decode = times.decode_ms;
    this.figures.total = performance.now() - this.begun;
  }

  private addCall(delta: CallDelta): void {
    const call = (this.calls[delta.index] ??= { id: '', name: '', arguments: '' });
    if (delta.id) call.id = delta.id;
    call.name += delta.function?.name ?? '';
    call.arguments += delta.function?.arguments ?? '';
  }

  progress(): Progress {
    const now: Progress = { text: this.text, figures: { ...this.figures } };
    if (this.reasoning) now.reasoning = this.reasoning;
    if (this.calls.length) now.calls = this.calls.map((call) => ({ ...call }));
    if (this.tokens.length) now.tokens = this.tokens.slice();
    if (this.finish) now.finish = this.finish;
    return now;
  }
}

function tokenOf(delta: TokenDelta): Token {
  return {
    text: delta.token,
    logprob: delta.logprob,
    others: (delta.top_logprobs ?? []).map((other) => ({ text: other.token, logprob: other.logprob })),
  };
}

/** The error of a stream without its end. */
export class Broken extends Error {
  constructor() {
    super('The connection ended before the answer did.');
  }
}

const [frame, longest] = [40, 1000]; // milliseconds between two looks at an answer that grows

/** Has the server answer, and tells of the answer again and again while it grows. */
export async function answer(body: Record<string, unknown>, signal: AbortSignal, tell: (progress: Progress) => void): Promise<void> {
  const grown = new Answer();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let pause = frame;
  try {
    const response = await ask('/v1/chat/completions', body, { signal, headers: { 'X-Trace-Level': 'brick' } });
    for await (const data of events(response.body!)) {
      grown.add(JSON.parse(data) as Chunk);
      timer ??= setTimeout(() => {
        timer = undefined;
        tell(grown.progress());
        const told = performance.now();
        // What is drawn slowly is drawn more rarely, so that the page can do other things.
        setTimeout(() => (pause = Math.min(longest, Math.max(frame, 3 * (performance.now() - told)))));
      }, pause);
    }
    if (!grown.finish) throw new Broken();
  } finally {
    clearTimeout(timer);
    tell(grown.progress());
  }
}
