import type { Settings } from './types';

export const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh'];

/** The settings of a new conversation. */
export function newSettings(): Settings {
  return {
    model: null,
    system: '',
    temperature: null,
    topP: null,
    topK: null,
    minP: null,
    seed: null,
    maxTokens: null,
    effort: null,
    schema: '',
    tools: '',
    alternatives: false,
  };
}

/** A setting that is a number, with the range that the server takes. */
export interface NumberSetting {
  key: 'temperature' | 'topP' | 'topK' | 'minP' | 'seed' | 'maxTokens';
  field: string;
  label: string;
  help: string;
  min: number;
  max?: number;
  step: number;
}

export const numberSettings: NumberSetting[] = [
  { key: 'temperature', field: 'temperature', label: 'Temperature', help: '0 takes the likeliest token each time', min: 0, max: 2, step: 0.05 },
  { key: 'topP', field: 'top_p', label: 'Top p', help: 'the likeliest tokens that have this share together', min: 0.01, max: 1, step: 0.01 },
  { key: 'topK', field: 'top_k', label: 'Top k', help: 'so many of the likeliest tokens; 0 for all', min: 0, step: 1 },
  { key: 'minP', field: 'min_p', label: 'Min p', help: 'tokens with this share of the likeliest one', min: 0, max: 1, step: 0.01 },
  { key: 'seed', field: 'seed', label: 'Seed', help: 'the same seed gives the same answer', min: 0, step: 1 },
  { key: 'maxTokens', field: 'max_tokens', label: 'Most tokens', help: 'of an answer', min: 1, step: 1 },
];

/** The fields of a request that settings stand for. Throws where a text is not JSON. */
export function fieldsOf(settings: Settings): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  for (const { key, field } of numberSettings) {
    if (settings[key] !== null) fields[field] = settings[key];
  }
  if (settings.effort) fields.reasoning_effort = settings.effort;
  if (settings.schema.trim()) {
    fields.response_format = { type: 'json_schema', json_schema: { name: 'answer', schema: parse(settings.schema, 'The schema') } };
  }
  if (settings.tools.trim()) fields.tools = toolsOf(parse(settings.tools, 'The list of tools'));
  return fields;
}

/** What is wrong with a text that shall be JSON, or null. */
export function jsonFault(text: string): string | null {
  if (!text.trim()) return null;
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

function parse(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`${what} is not JSON: ${(error as Error).message}`);
  }
}

/** Tools may be written as functions alone. */
function toolsOf(value: unknown): unknown[] {
  const list = Array.isArray(value) ? value : [value];
  return list.map((tool) => (tool && typeof tool === 'object' && 'name' in tool ? { type: 'function', function: tool } : tool));
}
