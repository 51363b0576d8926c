// Writes a .gz beside every file of dist that the server sends compressed. The output depends on the content alone: Node's gzip
// header has no time and no name.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { constants, gzipSync } from 'node:zlib';

const dist = new URL('../dist/', import.meta.url).pathname;
for (const name of readdirSync(dist, { recursive: true }).sort()) {
  if (!/\.(js|css|html|svg|json|csv)$/.test(name) || name.startsWith('.vite')) continue;
  const file = join(dist, name);
  writeFileSync(`${file}.gz`, gzipSync(readFileSync(file), { level: constants.Z_BEST_COMPRESSION }));
}
