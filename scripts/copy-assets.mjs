// What tsc leaves behind: the Avro schemas, read at run time from beside the code.
import { chmodSync, cpSync } from 'node:fs';

cpSync('src/schemas', 'dist/schemas', {
  recursive: true,
  filter: (path) => !path.endsWith('.ts'),
});
chmodSync('dist/cli.js', 0o755);
