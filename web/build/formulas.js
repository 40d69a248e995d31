// Writes src/generated: the font that formulas are set in, cut down to the characters that
// they mostly have, and the style sheet that asks for it. Browsers cannot draw roots and
// tall brackets without a font for formulas, and not every machine has one.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import subset from 'subset-font';

const range = (from, to) => Array.from({ length: to - from + 1 }, (_, i) => String.fromCodePoint(from + i)).join('');

const characters = [
  range(0x20, 0x7e),
  '±×÷·¬°′″‴–—†‡•…⋯⋮⋱',
  range(0x391, 0x3a9), // Greek
  range(0x3b1, 0x3c9),
  'ϑϕϖϱϵ',
  range(0x1d400, 0x1d433), // bold
  range(0x1d434, 0x1d467), // italic
  'ℎ',
  range(0x1d468, 0x1d49b), // both
  range(0x1d49c, 0x1d4b5), // script
  'ℬℰℱℋℐℒℳℛ',
  range(0x1d6a4, 0x1d6a5),
  range(0x1d6e2, 0x1d71b), // Greek, italic
  range(0x1d7ce, 0x1d7d7), // digits, bold
  'ℕℤℚℝℂℍℙ𝔸𝔹𝔻𝔼𝔽𝔾𝕀𝕂𝕄𝕆𝕊𝕋𝕍𝟙',
  'ℏℓ℘ℜℑℵ∂∇∞√∀∃∄∅∆∈∉∋∖∏∐∑−∓∗∘∙∝∠∥∦∧∨∩∪∫∬∭∮∴∵∼≃≅≈≔≠≡≤≥≦≧≪≫≲≳≺≻⪯⪰',
  '⊂⊃⊄⊆⊇⊈⊊⊕⊖⊗⊙⊢⊣⊤⊥⊨⋀⋁⋂⋃⋅⋆⨁⨂□◇',
  '←↑→↓↔↕↦↪⇀⇌⇐⇑⇒⇓⇔⟵⟶⟷⟸⟹⟺⟼',
  '⌈⌉⌊⌋⟨⟩‖∣|⏞⏟⎰⎱¯ˆ˜˙¨ˇ˘´`⃗̂̃̄̇̈',
].join('');

const folder = new URL('../src/generated/', import.meta.url);
const packages = new URL('../node_modules/', import.meta.url);
const font = readFileSync(new URL('@fontsource/stix-two-math/files/stix-two-math-latin-400-normal.woff2', packages));
const style = readFileSync(new URL('temml/dist/Temml-STIX2.css', packages), 'utf8');

mkdirSync(folder, { recursive: true });
writeFileSync(new URL('formulas.woff2', folder), await subset(font, characters, { targetFormat: 'woff2' }));
const source = /src: local\('STIXTwoMath'\),\s*url\('\.\/STIXTwoMath\.woff2'\);/;
if (!source.test(style)) throw new Error('the style sheet of temml names its font in another way');
writeFileSync(new URL('formulas.css', folder), style.replace(source, "src: url('./formulas.woff2') format('woff2');"));
