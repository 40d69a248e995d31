import { answer, Broken } from './answer';
import { APIError } from './api';
import { newId } from './id';
import { models } from './models.svelte';
import { requestOf, streamed } from './request';
import * as store from './store';
import { shownPath, subtree, successors } from './tree';
import type { Conversation, Message, TextFile } from './types';

/** What a conversation is one of. */
export interface Home {
  /** Notes that an answer begins or has ended. */
  answers(chat: Chat, under: boolean): void;
  /** Notes that a conversation has changed. */
  changed(conversation: Conversation): void;
  /** Waits for a change of the database, and says so where it fails. */
  kept(change: Promise<void>): Promise<void>;
}

/** A conversation with its messages, which can go on. */
export class Chat {
  conversation: Conversation = $state()!;
  messages: Message[] = $state([]);
  /** The answer that is under way, or null. */
  answering: string | null = $state(null);
  /** Nothing of it is kept yet. */
  isNew: boolean = $state(false);

  readonly after = $derived(successors(this.messages));
  readonly path = $derived(shownPath(this.after, this.conversation.chosen));
  /** It was deleted, and is not kept any more. */
  private gone = false;
  private stopping: AbortController | undefined;
  private readonly home: Home;

  constructor(home: Home, conversation: Conversation, messages: Message[], isNew: boolean) {
    this.home = home;
    this.conversation = conversation;
    this.messages = messages;
    this.isNew = isNew;
  }

  /** The versions of a message: those with the same one before. */
  versions(message: Message): Message[] {
    return this.after.get(message.parent ?? '') ?? [message];
  }

  /** Shows another version of a message. */
  choose(message: Message): void {
    this.conversation.chosen[message.parent ?? ''] = message.id;
    void this.keep();
  }

  /** Says something at the end, or in place of a message, beside it. */
  async say(text: string, files: TextFile[], instead?: Message): Promise<void> {
    const parent = instead ? instead.parent : (this.path.at(-1)?.id ?? null);
    const message = this.add({ role: 'user', text, parent, ...(files.length > 0 && { files }) });
    if (!this.conversation.named && this.path.length === 1) this.conversation.title = titleOf(text, files);
    await this.keep(message);
    await this.answer(message.id);
  }

  /** Says what came of the calls of an answer. */
  async results(calling: Message, texts: string[]): Promise<void> {
    let parent = calling.id;
    const added = (calling.calls ?? []).map((call, i) => {
      const message = this.add({ role: 'tool', text: texts[i] ?? '', parent, call: call.id });
      parent = message.id;
      return message;
    });
    await this.keep(...added);
    await this.answer(parent);
  }

  /** Answers again, beside the answer that there is. */
  async again(message: Message): Promise<void> {
    await this.answer(message.parent);
  }

  stop(): void {
    this.stopping?.abort();
  }

  /** Ends it for good. */
  end(): void {
    this.gone = true;
    this.stop();
  }

  /** Removes a message and all that follow it. */
  async remove(message: Message): Promise<void> {
    const gone = subtree(this.after, message.id);
    if (this.answering && gone.has(this.answering)) this.stop();
    this.messages = this.messages.filter((one) => !gone.has(one.id));
    await this.home.kept(store.removeMessages(gone));
    await this.keep();
  }

  private add(message: Pick<Message, 'role' | 'text' | 'parent'> & Partial<Message>): Message {
    const newest = this.messages.at(-1)?.created ?? 0;
    const whole: Message = { ...message, id: newId(), conversation: this.conversation.id, created: Math.max(Date.now(), newest + 1) };
    this.messages.push(whole);
    this.conversation.chosen[whole.parent ?? ''] = whole.id;
    return this.messages.at(-1)!;
  }

  private async answer(parent: string | null): Promise<void> {
    if (this.answering) return;
    const { settings } = this.conversation;
    const model = models.of(settings.model);
    const upTo = this.path.findIndex((message) => message.id === parent) + 1;
    const before = $state.snapshot(this.path.slice(0, upTo)) as Message[];
    const message = this.add({ role: 'assistant', text: '', parent, ...(model && { model: model.id }) });
    this.answering = message.id;
    this.stopping = new AbortController();
    this.home.answers(this, true);
    try {
      const body = { ...requestOf(settings, model?.id ?? '', before), ...streamed(settings) };
      await answer(body, this.stopping.signal, (progress) => {
        Object.assign(message, progress);
        const context = models.of(settings.model)?.max_model_len; // known when the model is loaded
        if (message.figures && context) message.figures.context = context;
      });
    } catch (error) {
      if (this.stopping.signal.aborted) message.finish = 'stopped';
      else message.error = faultOf(error);
    } finally {
      this.answering = null;
      this.home.answers(this, false);
      await this.keep(message);
    }
  }

  /** Keeps the conversation, with messages that have changed. */
  async keep(...changed: Message[]): Promise<void> {
    if (this.gone || (this.isNew && this.messages.length === 0)) return;
    this.isNew = false;
    if (changed.length > 0) this.conversation.updated = Date.now();
    const conversation = $state.snapshot(this.conversation);
    await this.home.kept(store.put(conversation, ...($state.snapshot(changed) as Message[])));
    this.home.changed(conversation);
  }
}

function faultOf(error: unknown): string {
  if (error instanceof TypeError) return new Broken().message; // what browsers make of a connection that breaks off
  if (error instanceof APIError && error.param) return `${error.message} (${error.param})`;
  return error instanceof Error ? error.message : String(error);
}

function titleOf(text: string, files: TextFile[]): string {
  const line = text.trim().split('\n')[0]!.trim() || files[0]?.name || 'New conversation';
  return line.length > 60 ? line.slice(0, 60).replace(/\s+\S*$/, '') + '…' : line;
}
