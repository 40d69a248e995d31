import type { Message } from './types';

/** Messages by those before them, '' for the first ones, the oldest first. */
export function successors(messages: Message[]): Map<string, Message[]> {
  const after = new Map<string, Message[]>();
  for (const message of messages) {
    const list = after.get(message.parent ?? '');
    if (list) list.push(message);
    else after.set(message.parent ?? '', [message]);
  }
  return after;
}

/** The messages that are shown: from a first one along those chosen, or else the newest. */
export function shownPath(after: Map<string, Message[]>, chosen: Record<string, string>): Message[] {
  const path: Message[] = [];
  const seen = new Set<string>();
  for (let at = ''; ; ) {
    const next = after.get(at);
    if (!next) return path;
    const message = next.find((one) => one.id === chosen[at]) ?? next[next.length - 1]!;
    if (seen.has(message.id)) return path; // what was imported may run in circles
    seen.add(message.id);
    path.push(message);
    at = message.id;
  }
}

/** A message and all that follow it, of any branch. */
export function subtree(after: Map<string, Message[]>, id: string): Set<string> {
  const all = new Set([id]);
  for (const one of all) for (const next of after.get(one) ?? []) all.add(next.id);
  return all;
}
