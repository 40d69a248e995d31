import { APIError, askJSON } from './api';

export interface Model {
  id: string;
  max_model_len?: number;
}

class Models {
  list: Model[] = $state([]);
  /** Why there is none yet, or null. */
  fault: string | null = $state(null);
  loading = $state(true);

  private asking = false;

  /** Asks until the server has a model. */
  async find(): Promise<void> {
    if (this.asking) return;
    this.asking = true;
    await this.ask().finally(() => (this.asking = false));
  }

  private async ask(): Promise<void> {
    for (;;) {
      try {
        this.list = (await askJSON<{ data: Model[] }>('/v1/models')).data;
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

  /** The model that a conversation talks to. */
  of(wanted: string | null): Model | undefined {
    return this.list.find((model) => model.id === wanted) ?? this.list[0];
  }
}

export const models = new Models();
