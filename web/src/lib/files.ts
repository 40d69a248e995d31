import type { TextFile } from './types';

const most = 1 << 20; // bytes of a file

/** The texts of files. Throws where one is not a text, or is too large. */
export async function readTexts(files: Iterable<File>): Promise<TextFile[]> {
  return Promise.all([...files].map(readText));
}

async function readText(file: File): Promise<TextFile> {
  if (file.size > most) throw new Error(`${file.name} is larger than 1 MiB.`);
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    throw new Error(`${file.name} is not UTF-8 text.`);
  }
  if (text.includes('\0')) throw new Error(`${file.name} is not text.`);
  return { name: file.name, text };
}

/** Has the browser save a text. */
export function saveAs(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: 'application/json' }));
  const link = Object.assign(document.createElement('a'), { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
