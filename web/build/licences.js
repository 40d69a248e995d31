import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

// What is in the page beside its own source, by the folder in node_modules.
const packages = ['@fontsource/stix-two-math', 'highlight.js', 'marked', 'svelte', 'temml'];

// Svelte's runtime has some small packages of others in it.
const within = ['clsx', 'devalue', 'esm-env'];

// licences puts the licences of what is in the page into page/licences.txt, which the page
// has a link to.
export function licences() {
  return {
    name: 'licences',
    apply: 'build',
    generateBundle() {
      const source = [...packages, ...within].map(text).join('\n\n');
      this.emitFile({ type: 'asset', fileName: 'page/licences.txt', source });
    },
  };
}

function text(name) {
  const folder = join('node_modules', name);
  const { version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  if (!file) throw new Error(`${name} has no file with its licence`);
  return `${name} ${version}, ${license}\n\n${readFileSync(join(folder, file), 'utf8').trim()}\n`;
}
