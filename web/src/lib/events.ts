/** The data of each event of a stream, until [DONE] or its end. */
export async function* events(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  let data: string[] = [];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      rest += done ? decoder.decode() : decoder.decode(value, { stream: true });
      const lines = rest.split(/\r\n|\n|\r(?!$)/);
      rest = done ? '' : lines.pop()!;
      for (const line of lines) {
        if (line.startsWith('data:')) data.push(line.slice(line[5] === ' ' ? 6 : 5));
        if (line !== '' || data.length === 0) continue;
        const text = data.join('\n');
        data = [];
        if (text === '[DONE]') return;
        yield text;
      }
      if (done) return;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
