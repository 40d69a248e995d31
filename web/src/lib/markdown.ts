import { Lexer, Marked, type MarkedExtension, type Token, type TokensList } from 'marked';

// Markdown becomes tokens alone, which components show as text: nothing of an answer is
// ever HTML.

/** A formula, as a block or within a line. */
export interface Formula {
  type: 'formula';
  raw: string;
  text: string;
  display: boolean;
}

// Formulas and paragraphs that are longer than any that mean something are not looked for: in
// what is made for it, that takes time that grows with the square.
const block: RegExp[] = [/^\$\$([\s\S]{1,4000}?)\$\$[ \t]*(?:\n+|$)/, /^\\\[([\s\S]{1,4000}?)\\\][ \t]*(?:\n+|$)/];
const inline: [RegExp, boolean][] = [
  [/^\$\$([^$]+?)\$\$/, true],
  [/^\\\[([\s\S]{1,4000}?)\\\]/, true],
  [/^\\\(([\s\S]{1,4000}?)\\\)/, false],
  [/^\$(?![\s\d.,]*\$)((?:\\.|[^\\$\n])*?(?:\\.|[^\\$\s]))\$(?!\d)/, false], // no prices
];

const formulas: MarkedExtension = {
  extensions: [
    {
      name: 'formula',
      level: 'block',
      start: (source) => position(source, /\n(?:\$\$|\\\[)/),
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

const { defaults } = new Marked({ gfm: true }, formulas);
const longest = 6000; // characters of a paragraph

class BoundedLexer extends Lexer {
  override inlineTokens(source: string, tokens: Token[] = []): Token[] {
    if (source.length <= longest) return super.inlineTokens(source, tokens);
    tokens.push({ type: 'escape', raw: source, text: source }); // as it was written
    return tokens;
  }
}

/** The blocks of a text. Those that are as they were before are the same objects. */
export function blocks(text: string, before: Token[]): Token[] {
  let list: TokensList;
  try {
    list = new BoundedLexer(defaults).lex(text);
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

const rightToLeft = /[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Adlam}]/u;

/** The way that a text runs, by its first letter. Browsers' own dir="auto" does not look into
 * what has a direction itself, as the paragraphs of a quotation have. */
export function direction(text: string): 'ltr' | 'rtl' {
  const letter = /\p{L}/u.exec(text);
  return letter && rightToLeft.test(letter[0]) ? 'rtl' : 'ltr';
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
