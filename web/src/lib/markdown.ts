import { Marked, type MarkedExtension, type Token, type TokensList } from 'marked';

// Markdown becomes tokens alone, which components show as text: nothing of an answer is
// ever HTML.

/** A formula, as a block or within a line. */
export interface Formula {
  type: 'formula';
  raw: string;
  text: string;
  display: boolean;
}

const block: RegExp[] = [/^\$\$([\s\S]+?)\$\$[ \t]*(?:\n+|$)/, /^\\\[([\s\S]+?)\\\][ \t]*(?:\n+|$)/];
const inline: [RegExp, boolean][] = [
  [/^\$\$([^$]+?)\$\$/, true],
  [/^\\\[([\s\S]+?)\\\]/, true],
  [/^\\\(([\s\S]+?)\\\)/, false],
  [/^\$(?![\s\d.,]*\$)((?:\\.|[^\\$\n])*?(?:\\.|[^\\$\s]))\$(?!\d)/, false], // no prices
];

const formulas: MarkedExtension = {
  extensions: [
    {
      name: 'formula',
      level: 'block',
      start: (source) => position(source, /(?:^|\n)(?:\$\$|\\\[)/),
      tokenizer(source) {
        for (const pattern of block) {
          const match = pattern.exec(source);
          if (match) return { type: 'formula', raw: match[0], text: match[1]!.trim(), display: true };
        }
        return undefined;
      },
    },
    {
      name: 'formula',
      level: 'inline',
      start: (source) => position(source, /\$|\\[([]/),
      tokenizer(source) {
        for (const [pattern, display] of inline) {
          const match = pattern.exec(source);
          if (match && !/^\s/.test(match[1]!)) return { type: 'formula', raw: match[0], text: match[1]!.trim(), display };
        }
        return undefined;
      },
    },
  ],
};

function position(source: string, pattern: RegExp): number | undefined {
  const at = source.search(pattern);
  return at < 0 ? undefined : at;
}

const marked = new Marked({ gfm: true }, formulas);

/** The blocks of a text. Those that are as they were before are the same objects. */
export function blocks(text: string, before: Token[]): Token[] {
  let list: TokensList;
  try {
    list = marked.lexer(text);
  } catch {
    return [{ type: 'code', raw: text, text }]; // nested beyond all measure
  }
  const linked = Object.keys(list.links).length > 0;
  return list.map((token, i) => (!linked && before[i]?.raw === token.raw && before[i].type === token.type ? before[i] : token));
}

/** A link that may be followed, or null: the web and letters alone. */
export function safeLink(href: string): string | null {
  return /^(https?:\/\/|mailto:)/i.test(href) ? href : null;
}

const named: Record<string, string> = {
  amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: '\u00a0', copy: '©', reg: '®', trade: '™', hellip: '…', mdash: '—', ndash: '–',
  times: '×', middot: '·', bull: '•', rarr: '→', larr: '←', le: '≤', ge: '≥', ne: '≠', deg: '°', euro: '€', laquo: '«', raquo: '»',
};

/** Text with its entities as the characters that they stand for. */
export function decoded(text: string): string {
  return text.replace(/&(?:#x([\da-f]{1,6})|#(\d{1,7})|([a-z]+));/gi, (whole, hex, decimal, name) => {
    if (name) return named[name] ?? whole;
    const code = hex ? parseInt(hex, 16) : parseInt(decimal, 10);
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}
