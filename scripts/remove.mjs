// `node scripts/remove.mjs PATH...`: removes files and folders, on every system alike.
import { rmSync } from 'node:fs';
import { argv } from 'node:process';

for (const path of argv.slice(2)) rmSync(path, { recursive: true, force: true });
