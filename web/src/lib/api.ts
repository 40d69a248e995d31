import { key } from './key.svelte';

/** An answer of the server that is an error. */
export class APIError extends Error {
  constructor(
    readonly status: number,
    readonly code: string | null,
    readonly param: string | null,
    message: string,
  ) {
    super(message);
  }
}

/** The address of a path of the server, which may lie below a path of a proxy. */
export function address(path: string): URL {
  return new URL('.' + path, document.baseURI.split('#')[0]);
}

/** Asks the server; an answer other than success is an APIError. */
export async function ask(path: string, body?: unknown, options: { signal?: AbortSignal; headers?: Record<string, string> } = {}): Promise<Response> {
  const headers = new Headers(options.headers);
  if (key.value) headers.set('Authorization', `Bearer ${key.value}`);
  const request: RequestInit = { headers, signal: options.signal ?? null, credentials: 'omit', cache: 'no-store', referrerPolicy: 'no-referrer' };
  if (body !== undefined) {
    headers.set('Content-Type', 'application/json');
    request.method = 'POST';
    request.body = JSON.stringify(body);
  }
  let response: Response;
  try {
    response = await fetch(address(path), request);
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new APIError(0, null, null, 'The server does not respond. Is it still running?');
  }
  if (!response.ok) throw await errorOf(response);
  return response;
}

export async function askJSON<T>(path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  return (await ask(path, body, signal ? { signal } : {})).json() as Promise<T>;
}

async function errorOf(response: Response): Promise<APIError> {
  const text = await response.text();
  let message = text.slice(0, 500) || `The server responded with status ${response.status}.`;
  let code: string | null = null;
  let param: string | null = null;
  try {
    const { error } = JSON.parse(text) as { error: { message: string; code: string | null; param: string | null } };
    ({ message, code, param } = error);
  } catch {
    // it is of someone between
  }
  if (response.status === 401) {
    key.wanted = code === 'invalid_api_key' ? 'The server does not know this API key.' : 'The server requires an API key.';
  }
  return new APIError(response.status, code, param, message);
}
