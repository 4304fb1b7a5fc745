// What tsc leaves behind: the Avro schemas, read at run time from beside the code.
import { chmodSync, cpSync, statSync } from 'node:fs';

cpSync('src', 'dist', {
  recursive: true,
  filter: (path) =>
    path.endsWith('.avsc') || (statSync(path).isDirectory() && !path.endsWith('ops/page')),
});
chmodSync('dist/cli.js', 0o755);
