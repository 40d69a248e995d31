import assert from 'node:assert/strict';
import { test } from 'node:test';
import { source } from './source.js';

const [archive, { events }, { parse }, { histogramOf, quantile, since }, { requestOf, withFiles }, { shownPath, subtree, successors }, { newSettings }] = await source(
  'archive', 'events', 'prometheus', 'histogram', 'request', 'tree', 'settings',
);

const message = (id, parent, role, text, more) => ({ id, parent, role, text, created: 1, conversation: 'c', ...more });

test('what is exported is read again, under other ids', () => {
  const conversation = { id: 'c', title: 'T', named: true, created: 1, updated: 2, settings: { ...newSettings(), temperature: 0.5, system: 'Be brief.' }, chosen: { '': 'a', a: 'b', gone: 'b' } };
  const messages = [
    message('a', null, 'user', 'x', { files: [{ name: 'n', text: 't' }] }),
    message('b', 'a', 'assistant', 'y', { tokens: [{ text: 'y', logprob: -1, others: [] }], calls: [{ id: '1', name: 'f', arguments: '{}' }], figures: { first: 3 } }),
  ];
  const [got] = archive.parse(archive.write([{ conversation, messages }]));
  const [a, b] = got.messages;
  assert.notEqual(a.id, 'a');
  assert.deepEqual(got.messages, [{ ...messages[0], id: a.id, conversation: got.conversation.id }, { ...messages[1], id: b.id, parent: a.id, conversation: got.conversation.id }]);
  assert.deepEqual(got.conversation, { ...conversation, id: got.conversation.id, chosen: { '': a.id, [a.id]: b.id } });
});

test('other files are refused', () => {
  const file = (messages, more) => JSON.stringify({ format: 'realizar conversations', version: 1, conversations: [{ title: '', created: 1, updated: 1, messages, ...more }] });
  for (const [text, want] of [
    ['{', /not JSON/], ['[]', /no object/], ['{}', /no conversations/], ['{"format": "realizar conversations", "version": 2}', /version 2/],
    [file([{ id: 'a', role: 'system', text: '', created: 1 }]), /the role "system"/], [file([{ id: 'a', role: 'user', text: 1, created: 1 }]), /text is no text/],
    [file([], { settings: [] }), /settings is no object/], [file([null]), /a message is no object/],
  ]) assert.throws(() => archive.parse(text), want, text);
  const settings = archive.parse(file([], { settings: { temperature: 'hot', system: 3, alternatives: 'yes', __proto__: 1, model: 'm', other: 1 } }))[0].conversation.settings;
  assert.deepEqual(settings, { ...newSettings(), model: 'm' });
});

test('events of a stream, however it is cut', async () => {
  const text = ': note\r\nevent: x\r\ndata: {"a":\r\ndata: "é"}\r\n\r\ndata:b\n\ndata: [DONE]\n\ndata: after\n\n';
  const bytes = new TextEncoder().encode(text);
  for (const size of [1, 2, 7, bytes.length]) {
    const body = new ReadableStream({
      start(controller) {
        for (let i = 0; i < bytes.length; i += size) controller.enqueue(bytes.slice(i, i + size));
        controller.close();
      },
    });
    const got = [];
    for await (const data of events(body)) got.push(data);
    assert.deepEqual(got, ['{"a":\n"é"}', 'b'], `${size} bytes at a time`);
  }
});

test('metrics and percentiles', () => {
  const samples = parse('# TYPE t histogram\nt_bucket{le="1",m="a\\"b"} 2\nt_bucket{le="2",m="a\\"b"} 4\nt_bucket{le="+Inf",m="a\\"b"} 4 1700000000\nbad line here\nx -Inf\n');
  assert.deepEqual(samples.get('t_bucket')[0], { labels: { le: '1', m: 'a"b' }, value: 2 });
  assert.equal(samples.get('x')[0].value, -Infinity);
  const histogram = histogramOf(samples.get('t_bucket'));
  assert.equal(quantile(histogram, 0.5), 1);
  assert.equal(quantile(histogram, 0.75), 1.5);
  assert.equal(quantile(since(histogram, histogram), 0.5), NaN);
});

test('a request has what was said, and no half of a call', () => {
  const path = [
    message('a', null, 'user', 'x', { files: [{ name: 'f.md', text: '```\na\n```\n' }] }),
    message('b', 'a', 'assistant', '', { calls: [{ id: '1', name: 'f', arguments: '{"a":1}' }, { id: '2', name: 'g', arguments: '{"a":' }] }),
    message('c', 'b', 'assistant', ''),
  ];
  assert.deepEqual(requestOf({ ...newSettings(), topK: 3 }, 'm', path), {
    model: 'm', top_k: 3,
    messages: [
      { role: 'user', content: 'x\n\nf.md:\n\n````md\n```\na\n```\n````' },
      { role: 'assistant', content: null, tool_calls: [{ id: '1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }] },
    ],
  });
  assert.equal(withFiles('', [{ name: 'a', text: 'b' }]), 'a:\n\n```\nb\n```');
});

test('paths through versions, and through circles', () => {
  const after = successors([message('a', null, 'user', ''), message('b', 'a', 'assistant', ''), message('c', 'a', 'assistant', ''), message('d', 'c', 'user', '')]);
  const ids = (chosen) => shownPath(after, chosen).map(({ id }) => id).join('');
  assert.equal(ids({}), 'acd');
  assert.equal(ids({ a: 'b' }), 'ab');
  assert.deepEqual([...subtree(after, 'c')], ['c', 'd']);
  const circle = successors([message('a', 'b', 'user', ''), message('b', 'a', 'user', ''), message('c', null, 'user', '')]);
  assert.deepEqual(shownPath(circle, {}).map(({ id }) => id), ['c']);
  assert.equal(subtree(circle, 'a').size, 2);
});
