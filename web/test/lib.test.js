import assert from 'node:assert/strict';
import { test } from 'node:test';
import { source } from './source.js';

const [archive, { events }, { parse }, { histogramOf, quantile, since }, { requestOf, withFiles }, { shownPath, subtree, successors }, { newSettings }, states] = await source(
  'archive', 'events', 'prometheus', 'histogram', 'request', 'tree', 'settings', 'states',
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
    ['{', /not JSON/], ['[]', /outermost value is not an object/], ['{}', /not an export of conversations/], ['{"format": "realizar conversations", "version": 2}', /version 2/],
    [file([{ id: 'a', role: 'system', text: '', created: 1 }]), /the role "system"/], [file([{ id: 'a', role: 'user', text: 1, created: 1 }]), /text is not a string/],
    [file([], { settings: [] }), /settings is not an object/], [file([null]), /a message is not an object/],
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

test('several models: each stands by itself, devices are there once', () => {
  const samples = parse([
    'realizar_model_state{model_name="b",state="ready"} 1', 'realizar_model_state{model_name="b",state="absent"} 0', 'realizar_model_state{model_name="a",state="absent"} 1',
    'realizar_model_requests{model_name="b"} 2', 'realizar_model_waiting_requests{model_name="a"} 3', 'realizar_model_requests{model_name="other"} 9',
    'realizar_model_memory_bytes{model_name="b",device="x"} 4', 'realizar_model_memory_bytes{model_name="b",device="y"} 5',
    'realizar_models_memory_bytes{device="x"} 4', 'realizar_models_memory_limit_bytes{device="x"} 8', 'realizar_models_memory_limit_bytes{device="y"} 0',
    'realizar_cache_pages{model_name="b",pool="0",place="device",state="used"} 1', 'realizar_cache_pages{model_name="b",pool="1",place="device",state="empty"} 3',
    'realizar_cache_pages{model_name="a",pool="0",place="device",state="idle"} 2', 'realizar_cache_pages{model_name="a",pool="0",place="host",state="used"} 2',
    'vllm:request_success_total{model_name="a",finished_reason="stop"} 2', 'vllm:request_success_total{model_name="b",finished_reason="stop"} 3',
    'vllm:cache_config_info{model_name="a",block_size="16"} 1', 'vllm:cache_config_info{model_name="b",block_size="32"} 1',
    'realizar_device_memory_total_bytes{model_name="a",device="x"} 7', 'realizar_device_memory_total_bytes{model_name="b",device="x"} 7',
  ].join('\n'));
  assert.deepEqual(states.statusesOf(samples), [{ name: 'a', state: 'absent', requests: 0, waiting: 3, memory: 0 }, { name: 'b', state: 'ready', requests: 2, waiting: 0, memory: 9 }]);
  assert.deepEqual(states.reservesOf(samples), [{ device: 'x', used: 4, limit: 8 }]);
  assert.deepEqual(states.pagesOf(samples).map(({ model, states }) => [model, ...states.map(({ count, share }) => [count, share])]), [['a', [0, 0], [2, 1], [0, 0]], ['b', [1, 0.25], [0, 0], [3, 0.75]]]);
  assert.deepEqual(states.byLabel(samples, 'vllm:request_success_total', 'finished_reason'), { stop: 5 });
  assert.equal(states.common(samples, 'vllm:cache_config_info', 'block_size'), NaN);
  assert.deepEqual([...states.byDevice(samples, 'realizar_device_memory_total_bytes')], [['x', 7]]);
  assert.deepEqual(states.statusesOf(parse('')), []);
  assert.deepEqual(['absent', 'ready', 'new', undefined].map(states.stateWord), ['not loaded', 'ready', 'new', '']);
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
