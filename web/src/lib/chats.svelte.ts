import { SvelteMap } from 'svelte/reactivity';
import * as archive from './archive';
import { Chat, type Home } from './chat.svelte';
import { newId } from './id';
import { newSettings } from './settings';
import * as store from './store';
import type { Conversation } from './types';

/** All conversations, and the one that is open. */
class Chats implements Home {
  list: Conversation[] = $state([]);
  open: Chat = $state(new Chat(this, fresh(), [], true));
  /** Those that are being answered, whether they are shown or not. */
  private readonly running = new SvelteMap<string, Chat>();
  /** Why conversations are not kept, or null. */
  fault: string | null = $state(null);
  private readonly others = new BroadcastChannel('realizar'); // tabs
  /** The conversation that was asked for last. */
  private wanted: string | null = null;

  constructor() {
    this.others.onmessage = () => void this.load();
  }

  async load(): Promise<void> {
    try {
      this.list = await store.conversations();
    } catch (error) {
      this.fault = `Conversations are not saved: ${(error as Error).message}`;
    }
  }

  /** Begins a conversation with the model of the one before. */
  begin(): void {
    this.wanted = null;
    if (this.open.isNew) return;
    const settings = { ...newSettings(), model: this.open.conversation.settings.model };
    this.open = new Chat(this, { ...fresh(), settings }, [], true);
  }

  async show(id: string): Promise<boolean> {
    this.wanted = id;
    if (this.open.conversation.id === id) return true;
    const conversation = this.list.find((one) => one.id === id);
    if (!conversation) return false;
    const messages = await store.messages(id);
    if (this.wanted === id) this.open = this.running.get(id) ?? new Chat(this, $state.snapshot(conversation), messages, false);
    return true;
  }

  changed(conversation: Conversation): void {
    const others = this.list.filter((one) => one.id !== conversation.id);
    this.list = [conversation, ...others].sort((a, b) => b.updated - a.updated);
    this.others.postMessage('changed');
  }

  answers(chat: Chat, under: boolean): void {
    if (under) this.running.set(chat.conversation.id, chat);
    else this.running.delete(chat.conversation.id);
  }

  /** A conversation that is open or being answered. */
  private alive(id: string): Chat | undefined {
    return this.open.conversation.id === id ? this.open : this.running.get(id);
  }

  isAnswering(id: string): boolean {
    return this.running.has(id);
  }

  async rename(id: string, title: string): Promise<void> {
    const conversation = this.list.find((one) => one.id === id);
    if (!conversation || !title.trim()) return;
    const renamed = { ...$state.snapshot(conversation), title: title.trim().slice(0, 200), named: true };
    const chat = this.alive(id);
    if (chat) Object.assign(chat.conversation, { title: renamed.title, named: true });
    await this.kept(store.put(renamed));
    this.changed(renamed);
  }

  async remove(id: string): Promise<void> {
    this.alive(id)?.end();
    await this.kept(store.remove(id));
    this.list = this.list.filter((one) => one.id !== id);
    if (this.open.conversation.id === id) this.open = new Chat(this, fresh(), [], true);
    this.others.postMessage('changed');
  }

  /** Conversations as a text, all or one. */
  async export(id?: string): Promise<string> {
    const wanted = this.list.filter((one) => id === undefined || one.id === id);
    const all = await Promise.all(wanted.map(async (one) => ({ conversation: $state.snapshot(one), messages: await store.messages(one.id) })));
    return archive.write(all);
  }

  /** Takes the conversations of such a text, and returns the id of the first. */
  async import(text: string): Promise<string | undefined> {
    const all = archive.parse(text);
    for (const { conversation, messages } of all) await store.put(conversation, ...messages);
    await this.load();
    this.others.postMessage('changed');
    return all[0]?.conversation.id;
  }

  async kept(change: Promise<void>): Promise<void> {
    try {
      await change;
      this.fault = null;
    } catch (error) {
      this.fault = `Conversations are not saved: ${(error as Error).message}`;
    }
  }
}

function fresh(): Conversation {
  const now = Date.now();
  return { id: newId(), title: 'New conversation', named: false, created: now, updated: now, settings: newSettings(), chosen: {} };
}

export const chats = new Chats();
