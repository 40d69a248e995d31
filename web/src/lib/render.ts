import { askJSON } from './api';

/** What a prompt becomes. */
export interface Rendered {
  /** The text, or null where it is what was given. */
  prompt: string | null;
  characters: number;
  tokens: { id: number; text: string }[];
  context: number | undefined;
}

interface Tokenized {
  tokens: number[];
  token_strs: string[] | null;
  max_model_len?: number;
}

/** What a chat request becomes. */
export async function render(request: Record<string, unknown>, signal: AbortSignal): Promise<Rendered> {
  const made = await askJSON<{ prompt: string; token_ids: number[]; max_model_len?: number }>('/v1/chat/completions/render', request, signal);
  const texts = await spell(request, made.prompt, made.token_ids, signal);
  return {
    prompt: made.prompt,
    characters: [...made.prompt].length,
    tokens: made.token_ids.map((id, i) => ({ id, text: texts[i] ?? '' })),
    context: made.max_model_len,
  };
}

/** The tokens as the vocabulary spells them. */
async function spell(request: Record<string, unknown>, prompt: string, tokens: number[], signal: AbortSignal): Promise<string[]> {
  const same = (one: Tokenized) => one.tokens.length === tokens.length && one.tokens.every((id, i) => id === tokens[i]);
  const { model, messages, tools } = request;
  const chat = await askJSON<Tokenized>('/tokenize', { model, messages, tools, return_token_strs: true }, signal);
  if (same(chat)) return chat.token_strs ?? [];
  // The effort of thought changes the template's text, which /tokenize is not told.
  const text = await askJSON<Tokenized>('/tokenize', { model, prompt, add_special_tokens: false, parse_special: true, return_token_strs: true }, signal);
  return same(text) ? (text.token_strs ?? []) : [];
}

/** What a text becomes as it is. */
export async function tokenize(model: string, prompt: string, special: boolean, signal: AbortSignal): Promise<Rendered> {
  const made = await askJSON<Tokenized>('/tokenize', { model, prompt, parse_special: special, return_token_strs: true }, signal);
  return {
    prompt: null,
    characters: [...prompt].length,
    tokens: made.tokens.map((id, i) => ({ id, text: made.token_strs?.[i] ?? '' })),
    context: made.max_model_len,
  };
}
