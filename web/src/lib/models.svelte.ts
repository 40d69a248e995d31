import { APIError, ask, askJSON } from './api';
import { events } from './events';

export interface Model {
  id: string;
  max_model_len?: number;
  /** Where the server has several models, which it loads and unloads. */
  state?: string;
}

const between = 100; // milliseconds between two looks at the list, at least
const retry = 3000; // milliseconds after the stream of events has ended

class Models {
  list: Model[] = $state([]);
  /** Why there is none yet, or null. */
  fault: string | null = $state(null);
  loading = $state(true);

  private asking = false;
  private turn = 0;
  private following: AbortController | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;

  /** Asks until the server has a model, and follows how several stand, while the page is seen. */
  async find(): Promise<void> {
    if (this.asking) return;
    this.asking = true;
    await this.ask().finally(() => (this.asking = false));
    void this.follow();
  }

  /** How the model of that name stands, where the server says. */
  stateOf(id: string | undefined): string | undefined {
    return this.list.length > 1 ? this.list.find((model) => model.id === id)?.state : undefined;
  }

  /** Follows no longer, until find is called. */
  rest(): void {
    this.following?.abort();
  }

  private async ask(): Promise<void> {
    while (!document.hidden || this.list.length === 0) {
      try {
        await this.look();
        this.fault = null;
        this.loading = false;
        return;
      } catch (error) {
        if (!(error instanceof APIError)) throw error;
        this.loading = error.code === 'loading';
        this.fault = this.loading ? 'The model is being loaded.' : error.message;
        if (error.status !== 503 && error.status !== 0) return;
      }
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  }

  private async look(): Promise<void> {
    const turn = ++this.turn;
    const { data } = await askJSON<{ data: Model[] }>('/v1/models');
    if (turn === this.turn) this.list = data;
  }

  /** Looks at the list again at each event. A server that has no events is left alone. */
  private async follow(): Promise<void> {
    if (this.following || document.hidden || this.list.length < 2 || !this.list.some(({ state }) => state)) return;
    const following = (this.following = new AbortController());
    let again = true;
    try {
      const response = await ask('/models/events', undefined, { signal: following.signal });
      const reader = events(response.body!);
      while (!(await reader.next()).done) this.timer ??= setTimeout(() => this.lookAgain(), between);
    } catch (error) {
      again = !(error instanceof APIError) || error.status === 0 || error.status === 503;
    }
    this.following = undefined;
    if (again && !following.signal.aborted) setTimeout(() => void this.find(), retry);
  }

  private lookAgain(): void {
    this.timer = undefined;
    this.look().catch(() => undefined); // the stream of events ends, too, where the server is gone
  }

  /** The model that a conversation talks to. */
  of(wanted: string | null): Model | undefined {
    return this.list.find((model) => model.id === wanted) ?? this.list[0];
  }
}

export const models = new Models();
