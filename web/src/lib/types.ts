/** A conversation, without its messages. */
export interface Conversation {
  id: string;
  title: string;
  named: boolean; // by the user
  created: number;
  updated: number;
  settings: Settings;
  /** Which of a message's successors is shown, by the message's id, '' for the first ones. */
  chosen: Record<string, string>;
}

/** How answers of a conversation are made. What is null is left to the server. */
export interface Settings {
  model: string | null;
  system: string;
  temperature: number | null;
  topP: number | null;
  topK: number | null;
  minP: number | null;
  seed: number | null;
  maxTokens: number | null;
  effort: string | null;
  schema: string;
  tools: string;
  alternatives: boolean;
}

export type Role = 'user' | 'assistant' | 'tool';

/** A message of the tree that a conversation is. */
export interface Message {
  id: string;
  conversation: string;
  parent: string | null;
  role: Role;
  text: string;
  created: number;
  model?: string;
  reasoning?: string;
  files?: TextFile[];
  calls?: Call[];
  /** Of role tool: the call that it answers. */
  call?: string;
  tokens?: Token[];
  figures?: Figures;
  finish?: string;
  error?: string;
}

/** A text that goes with a message. */
export interface TextFile {
  name: string;
  text: string;
}

/** A call of a tool. */
export interface Call {
  id: string;
  name: string;
  arguments: string;
}

/** A token of an answer, with what else might have stood there, the likeliest first. */
export interface Token {
  text: string;
  logprob: number;
  others: { text: string; logprob: number }[];
}

/** What an answer took. Times are milliseconds. */
export interface Figures {
  prompt?: number;
  cached?: number;
  answer?: number;
  context?: number;
  first?: number;
  decode?: number;
  total?: number;
}
