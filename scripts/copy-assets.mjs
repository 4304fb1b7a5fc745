// What tsc leaves behind: the Avro schemas and the WebAssembly, read at run time from beside the code.
import { chmodSync, cpSync, statSync } from 'node:fs';
import { extname } from 'node:path';

cpSync('src', 'dist', {
  recursive: true,
  filter: (path) =>
    ['.avsc', '.wasm'].includes(extname(path)) ||
    (statSync(path).isDirectory() &&
      !path.endsWith('ops/page') &&
      !path.endsWith('transcoder/wasm')),
});
chmodSync('dist/cli.js', 0o755);
