import type { Conversation, Message } from './types';

// Conversations lie in the browser alone, in a database of two stores.
const name = 'realizar';

let opened: Promise<IDBDatabase> | undefined;

function open(): Promise<IDBDatabase> {
  opened ??= new Promise<IDBDatabase>((resolve, reject) => {
    const request = indexedDB.open(name, 1);
    request.onupgradeneeded = () => {
      request.result.createObjectStore('conversations', { keyPath: 'id' });
      request.result.createObjectStore('messages', { keyPath: 'id' }).createIndex('conversation', 'conversation');
    };
    request.onsuccess = () => {
      request.result.onversionchange = () => request.result.close();
      resolve(request.result);
    };
    request.onerror = () => reject(request.error ?? new Error('The database of the browser cannot be opened.'));
  });
  opened.catch(() => (opened = undefined));
  return opened;
}

function result<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error('The database of the browser failed.'));
  });
}

async function change(act: (conversations: IDBObjectStore, messages: IDBObjectStore) => void): Promise<void> {
  const transaction = (await open()).transaction(['conversations', 'messages'], 'readwrite');
  act(transaction.objectStore('conversations'), transaction.objectStore('messages'));
  await new Promise<void>((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error ?? new Error('The database of the browser aborted a change.'));
  });
}

async function read<T>(store: 'conversations' | 'messages', act: (store: IDBObjectStore) => IDBRequest<T>): Promise<T> {
  return result(act((await open()).transaction(store).objectStore(store)));
}

/** All conversations, the latest first. */
export async function conversations(): Promise<Conversation[]> {
  const all = (await read('conversations', (store) => store.getAll())) as Conversation[];
  return all.sort((a, b) => b.updated - a.updated);
}

/** The messages of a conversation, the oldest first. */
export async function messages(conversation: string): Promise<Message[]> {
  const all = (await read('messages', (store) => store.index('conversation').getAll(conversation))) as Message[];
  return all.sort((a, b) => a.created - b.created);
}

/** The ids of the conversations with a message that has the text, in any case. */
export async function mentioning(text: string): Promise<Set<string>> {
  const wanted = text.toLowerCase();
  const found = new Set<string>();
  const store = (await open()).transaction('messages').objectStore('messages');
  await new Promise<void>((resolve, reject) => {
    const request = store.openCursor();
    request.onerror = () => reject(request.error ?? new Error('The database of the browser failed.'));
    request.onsuccess = () => {
      const cursor = request.result;
      if (!cursor) return resolve();
      const message = cursor.value as Message;
      if (message.text.toLowerCase().includes(wanted)) found.add(message.conversation);
      cursor.continue();
    };
  });
  return found;
}

export function put(conversation: Conversation, ...changed: Message[]): Promise<void> {
  return change((conversations, messages) => {
    conversations.put(conversation);
    for (const message of changed) messages.put(message);
  });
}

export function removeMessages(ids: Iterable<string>): Promise<void> {
  return change((_, messages) => {
    for (const id of ids) messages.delete(id);
  });
}

export function remove(conversation: string): Promise<void> {
  return change((conversations, messages) => {
    conversations.delete(conversation);
    const request = messages.index('conversation').getAllKeys(conversation);
    request.onsuccess = () => request.result.forEach((id) => messages.delete(id));
  });
}
