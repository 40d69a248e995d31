import { svelte } from '@sveltejs/vite-plugin-svelte';
import { compress } from './build/compress.js';
import { licences } from './build/licences.js';

const server = process.env.REALIZAR ?? 'http://localhost:8080';

export default {
  base: './', // so that a proxy may have the page below a path of its own
  plugins: [svelte(), licences(), compress()],
  build: {
    outDir: '../internal/server/page/dist',
    emptyOutDir: true,
    assetsDir: 'page',
    assetsInlineLimit: 0, // the policy lets no data: in
    modulePreload: { polyfill: false },
    target: ['chrome123', 'firefox125', 'safari17.5'],
    reportCompressedSize: false,
  },
  server: {
    proxy: Object.fromEntries(['/v1', '/metrics', '/health', '/ready', '/tokenize', '/detokenize'].map((path) => [path, server])),
  },
};
