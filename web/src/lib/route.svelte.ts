// The view that the address names: #/ and #/c/ID are conversations, #/server and #/prompt
// the others.
export type View = 'talk' | 'server' | 'prompt';

function read(): { view: View; id: string | null } {
  const [, first, second] = location.hash.split('/');
  if (first === 'server' || first === 'prompt') return { view: first, id: null };
  return { view: 'talk', id: (first === 'c' && second) || null };
}

export const route = $state(read());

addEventListener('hashchange', () => Object.assign(route, read()));

export function go(hash: string): void {
  location.hash = hash;
}
