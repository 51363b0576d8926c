// Fails if the first load (the entry with all that it imports statically, its styles and its font) is larger than the budget,
// and prints what the lazy parts weigh.
import { readFileSync, statSync } from 'node:fs';
import { gzipSync } from 'node:zlib';

const budget = { script: 200_000 };
const dist = new URL('../dist/', import.meta.url);
const manifest = JSON.parse(readFileSync(new URL('.vite/manifest.json', dist), 'utf8'));

const size = (file) => {
  const bytes = readFileSync(new URL(file, dist));
  return file.endsWith('.woff2') ? statSync(new URL(file, dist)).size : gzipSync(bytes, { level: 9 }).length;
};
const reach = (key, seen = new Set()) => {
  if (seen.has(key)) return seen;
  seen.add(key);
  for (const next of manifest[key].imports ?? []) reach(next, seen);
  return seen;
};
const weigh = (keys) => {
  const files = new Set();
  for (const key of keys) {
    files.add(manifest[key].file);
    for (const css of manifest[key].css ?? []) files.add(css);
  }
  return [...files].reduce((sum, file) => sum + size(file), 0);
};

const entry = Object.keys(manifest).find((key) => manifest[key].isEntry);
const first = reach(entry);
const total = weigh(first);
console.log(`first load ${(total / 1000).toFixed(1)} kB of ${budget.script / 1000} kB`);
for (const key of Object.keys(manifest)) {
  if (!manifest[key].isDynamicEntry) continue;
  const own = [...reach(key)].filter((other) => !first.has(other));
  console.log(`  ${key.padEnd(44)} ${(weigh(own) / 1000).toFixed(1).padStart(7)} kB`);
}
if (total > budget.script) {
  console.error('The first load is over its budget: import what is not needed at once with lazy().');
  process.exit(1);
}
