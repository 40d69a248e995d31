/** A piece of code: a text, or pieces with a class. */
export type Piece = string | { kind: string; pieces: Piece[] };

type Highlighter = (code: string, language: string) => Piece[] | null;

let loaded: Promise<Highlighter> | undefined;

/** The highlighter, which is loaded when the first code is there. */
export function highlighter(): Promise<Highlighter> {
  loaded ??= import('./languages').then(({ highlight }) => (code, language) => {
    const html = highlight(code, language);
    return html === null ? null : pieces(html);
  });
  return loaded;
}

const marks = /<span class="([^"]*)">|<\/span>|&(amp|lt|gt|quot|#x27);|[^<&]+|[<&]/g;
const entities: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', '#x27': "'" };

/** The pieces of what highlight.js writes: spans and five entities. */
function pieces(html: string): Piece[] {
  const root: Piece[] = [];
  const open = [root];
  for (const [whole, kind, entity] of html.matchAll(marks)) {
    const here = open[open.length - 1]!;
    if (kind !== undefined) {
      const span = { kind, pieces: [] as Piece[] };
      here.push(span);
      open.push(span.pieces);
    } else if (whole === '</span>') {
      if (open.length > 1) open.pop();
    } else {
      const text = entity ? entities[entity]! : whole;
      const last = here.length - 1;
      if (typeof here[last] === 'string') here[last] += text;
      else here.push(text);
    }
  }
  return root;
}
