import assert from 'node:assert/strict';
import { test } from 'node:test';
import { source } from './source.js';

const [{ blocks, decoded, direction, safeLink }, { highlighter }] = await source('markdown', 'highlight');

const kinds = (text) => blocks(text, []).map((block) => block.type).filter((type) => type !== 'space');
const inline = (text) => blocks(text, [])[0].tokens.map(({ type, text, display }) => (type === 'formula' ? { text, display } : text));

test('formulas are found, and prices are none', () => {
  for (const [text, want] of [
    ['$x^2$', [{ text: 'x^2', display: false }]],
    ['a \\(b\\) c', ['a ', { text: 'b', display: false }, ' c']],
    ['a $$b$$ c', ['a ', { text: 'b', display: true }, ' c']],
    ['($$b$$)', ['(', { text: 'b', display: true }, ')']],
    ['from $5 to $10', ['from $5 to $10']],
    ['$5$ each', ['$5$ each']],
    ['a `$b$`', ['a ', '$b$']],
  ]) assert.deepEqual(inline(text), want, text);
  assert.deepEqual(kinds('Text\n$$\na\n$$\nmore\n\\[b\\]\n'), ['paragraph', 'formula', 'paragraph', 'formula']);
  assert.deepEqual(kinds('$$ never ends'), ['paragraph']);
});

test('blocks that stay are the same objects', () => {
  const before = blocks('# One\n\ntwo', []);
  const now = blocks('# One\n\ntwo and more', before);
  assert.equal(now[0], before[0]);
  assert.notEqual(now.at(-1), before.at(-1));
});

test('links lead to the web and to mail', () => {
  for (const href of ['https://a.example', 'HTTP://a', 'mailto:a@b']) assert.equal(safeLink(href), href);
  for (const href of ['javascript:1', ' javascript:1', 'java\nscript:1', 'data:text/html,x', 'vbscript:x', 'file:///etc', '//a.example', '/v1', '#x', 'blob:x', '']) assert.equal(safeLink(href), null, href);
});

test('entities', () => {
  assert.equal(decoded('&lt;b&gt; &amp;amp; &#65;&#x42; &none; &#0; &#1114112;'), '<b> &amp; AB &none; &#0; &#1114112;');
});

test('directions', () => {
  for (const [text, want] of [['abc', 'ltr'], ['12, שלום', 'rtl'], ['> **مرحبا**', 'rtl'], ['a مرحبا', 'ltr'], ['漢字', 'ltr'], ['', 'ltr']]) assert.equal(direction(text), want, text);
});

test('texts that are made to take long do not', () => {
  for (const piece of ['_a __b', '<', 'a_', '\n\\[', '\\[', '\\(', '[', '$$ a\n\n', '*a **b ', '![', '> ', '- x\n  ', '`a``', '$x ', 'a|']) {
    const begun = performance.now();
    blocks(piece.repeat(40_000 / piece.length), []);
    const took = performance.now() - begun;
    assert.ok(took < 3000, `${JSON.stringify(piece)} takes ${took} ms`);
  }
});

test('code keeps every character', async () => {
  const highlight = await highlighter();
  const text = (pieces) => pieces.map((piece) => (typeof piece === 'string' ? piece : text(piece.pieces))).join('');
  for (const [code, language] of [
    ['func a() string { return "<b>&amp;</b>" } // \'x\'', 'go'],
    ['<script>alert(1)</script><img src=x onerror="a">', 'html'],
    ['</span><span class="x">', 'json'],
    ['a < b && c > d', 'c'],
  ]) assert.equal(text(highlight(code, language)), code);
  assert.equal(highlight('x', 'constructor'), null);
});
