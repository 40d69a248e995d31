import { newId } from './id';
import { newSettings } from './settings';
import type { Call, Conversation, Figures, Message, Role, Settings, TextFile, Token } from './types';

/** A conversation with all its messages, as it is exported. */
export interface Whole {
  conversation: Conversation;
  messages: Message[];
}

const format = 'realizar conversations';

/** Conversations as a JSON text. */
export function write(all: Whole[]): string {
  const conversations = all.map(({ conversation, messages }) => ({
    ...conversation,
    messages: messages.map(({ conversation: _, ...message }) => message),
  }));
  return JSON.stringify({ format, version: 1, conversations }, null, 2) + '\n';
}

/** The conversations of such a text, under new ids. Throws where it is none. */
export function parse(text: string): Whole[] {
  let root: unknown;
  try {
    root = JSON.parse(text);
  } catch (error) {
    throw new Error(`The file is not JSON: ${(error as Error).message}`);
  }
  const file = object(root, 'the outermost value');
  if (file.format !== format) throw new Error('The file is not an export of conversations from this page.');
  if (file.version !== 1) throw new Error(`The file has version ${String(file.version)}; this page reads version 1.`);
  return list(file.conversations, 'conversations').map(whole);
}

function whole(value: unknown): Whole {
  const from = object(value, 'a conversation');
  const id = newId();
  const ids = new Map<string, string>(); // new ones by old ones
  const given = list(from.messages, 'messages').map((one) => object(one, 'a message'));
  for (const message of given) ids.set(string(message.id, 'id'), newId());
  const renamed = (old: unknown) => (typeof old === 'string' && ids.get(old)) || null;
  const messages = given.map((message) => ({ ...messageOf(message), id: ids.get(message.id as string)!, conversation: id, parent: renamed(message.parent) }));
  const chosen: Record<string, string> = {};
  for (const [before, after] of Object.entries(object(from.chosen ?? {}, 'chosen'))) {
    const at = before === '' ? '' : renamed(before);
    const to = renamed(after);
    if (at !== null && to) chosen[at] = to;
  }
  const conversation: Conversation = {
    id,
    title: string(from.title, 'title').slice(0, 200),
    named: from.named === true,
    created: number(from.created, 'created'),
    updated: number(from.updated, 'updated'),
    settings: settingsOf(object(from.settings ?? {}, 'settings')),
    chosen,
  };
  return { conversation, messages };
}

function settingsOf(from: Record<string, unknown>): Settings {
  const settings = newSettings();
  const to = settings as unknown as Record<string, unknown>;
  for (const [key, initial] of Object.entries(settings)) {
    const value = from[key];
    const text = key === 'model' || key === 'effort';
    if (initial === null ? typeof value === (text ? 'string' : 'number') : typeof value === typeof initial) to[key] = value;
  }
  return settings;
}

const roles: Role[] = ['user', 'assistant', 'tool'];

function messageOf(from: Record<string, unknown>): Omit<Message, 'id' | 'conversation' | 'parent'> {
  const role = from.role as Role;
  if (!roles.includes(role)) throw new Error(`A message has the role ${JSON.stringify(from.role)}.`);
  const message: Omit<Message, 'id' | 'conversation' | 'parent'> = { role, text: string(from.text, 'text'), created: number(from.created, 'created') };
  for (const key of ['model', 'reasoning', 'call', 'finish', 'error'] as const) {
    if (from[key] !== undefined) message[key] = string(from[key], key);
  }
  if (from.files !== undefined) message.files = list(from.files, 'files').map(fileOf);
  if (from.calls !== undefined) message.calls = list(from.calls, 'calls').map(callOf);
  if (from.tokens !== undefined) message.tokens = list(from.tokens, 'tokens').map(tokenOf);
  if (from.figures !== undefined) message.figures = figuresOf(object(from.figures, 'figures'));
  return message;
}

function fileOf(value: unknown): TextFile {
  const from = object(value, 'a file');
  return { name: string(from.name, 'name'), text: string(from.text, 'text') };
}

function callOf(value: unknown): Call {
  const from = object(value, 'a call');
  return { id: string(from.id, 'id'), name: string(from.name, 'name'), arguments: string(from.arguments, 'arguments') };
}

function tokenOf(value: unknown): Token {
  const one = (value: unknown) => {
    const from = object(value, 'a token');
    return { text: string(from.text, 'text'), logprob: number(from.logprob, 'logprob') };
  };
  return { ...one(value), others: list(object(value, 'a token').others, 'others').map(one) };
}

function figuresOf(from: Record<string, unknown>): Figures {
  const figures: Figures = {};
  for (const key of ['prompt', 'cached', 'answer', 'context', 'first', 'decode', 'total'] as const) {
    if (from[key] !== undefined) figures[key] = number(from[key], key);
  }
  return figures;
}

function object(value: unknown, what: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error(`In the file, ${what} is not an object.`);
  return value as Record<string, unknown>;
}

function list(value: unknown, what: string): unknown[] {
  if (!Array.isArray(value)) throw new Error(`In the file, ${what} is not a list.`);
  return value;
}

function string(value: unknown, what: string): string {
  if (typeof value !== 'string') throw new Error(`In the file, ${what} is not a string.`);
  return value;
}

function number(value: unknown, what: string): number {
  if (typeof value !== 'number' || !Number.isFinite(value)) throw new Error(`In the file, ${what} is not a number.`);
  return value;
}
