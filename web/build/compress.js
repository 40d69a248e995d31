import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'fflate';

// compress has every file of the build be a .gz alone. fflate is JavaScript, so that the
// bytes are the same whatever zlib Node.js has.
export function compress() {
  let folder;
  return {
    name: 'compress',
    apply: 'build',
    configResolved(config) {
      folder = config.build.outDir;
    },
    closeBundle() {
      for (const name of readdirSync(folder, { recursive: true })) {
        const path = join(folder, name);
        if (!statSync(path).isFile()) continue;
        writeFileSync(path + '.gz', gzipSync(readFileSync(path), { level: 9, mem: 12, mtime: 0 }));
        rmSync(path);
      }
    },
  };
}
