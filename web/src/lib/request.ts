import { fieldsOf } from './settings';
import type { Message, Settings, TextFile } from './types';

/** The body of a request of /v1/chat/completions for what comes after the messages. */
export function requestOf(settings: Settings, model: string, path: Message[]): Record<string, unknown> {
  const messages: Record<string, unknown>[] = [];
  if (settings.system.trim()) messages.push({ role: 'system', content: settings.system });
  for (const message of path) {
    const said = messageOf(message);
    if (said) messages.push(said);
  }
  return { model, messages, ...fieldsOf(settings) };
}

/** The further fields of a request whose answer is shown as it comes. */
export function streamed(settings: Settings): Record<string, unknown> {
  const fields: Record<string, unknown> = { stream: true, stream_options: { include_usage: true } };
  if (settings.alternatives) Object.assign(fields, { logprobs: true, top_logprobs: 5 });
  return fields;
}

function messageOf(message: Message): Record<string, unknown> | null {
  switch (message.role) {
    case 'user':
      return { role: 'user', content: withFiles(message.text, message.files ?? []) };
    case 'tool':
      return { role: 'tool', content: message.text, tool_call_id: message.call };
    case 'assistant': {
      const calls = (message.calls ?? []).filter((call) => isObject(call.arguments));
      if (!message.text && calls.length === 0) return null; // it was cut off before it said anything
      const said: Record<string, unknown> = { role: 'assistant', content: message.text || null };
      if (message.reasoning) said.reasoning_content = message.reasoning;
      if (calls.length > 0) {
        said.tool_calls = calls.map((call) => ({ id: call.id, type: 'function', function: { name: call.name, arguments: call.arguments || '{}' } }));
      }
      return said;
    }
  }
}

/** An answer that was cut off may have half a call. */
function isObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text || '{}');
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

/** A text with files after it, each in a fence that is longer than any within. */
export function withFiles(text: string, files: TextFile[]): string {
  return [text, ...files.map(fenced)].filter(Boolean).join('\n\n');
}

function fenced(file: TextFile): string {
  const longest = Math.max(2, ...[...file.text.matchAll(/`+/g)].map((run) => run[0].length));
  const fence = '`'.repeat(longest + 1);
  const kind = /\.(\w+)$/.exec(file.name)?.[1] ?? '';
  return `${file.name}:\n\n${fence}${kind}\n${file.text.replace(/\n$/, '')}\n${fence}`;
}
