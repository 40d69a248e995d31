import { after } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createServer } from 'vite';

/** The files of src/lib by their names, as the build makes them. */
export async function source(...names) {
  const root = fileURLToPath(new URL('..', import.meta.url));
  const server = await createServer({ root, configFile: false, logLevel: 'error', appType: 'custom', server: { middlewareMode: true, ws: false }, optimizeDeps: { noDiscovery: true } });
  after(() => server.close());
  return Promise.all(names.map((name) => server.ssrLoadModule(`/src/lib/${name}.ts`)));
}
