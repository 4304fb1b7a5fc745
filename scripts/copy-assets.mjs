// Files that tsc does not write: the Avro schemas, descriptions and the WebAssembly, read at run time from beside the code, and the JSON
// Schema of descriptions for editors.
import { chmodSync, cpSync, statSync, writeFileSync } from 'node:fs';
import { extname } from 'node:path';
import { z } from 'zod';

cpSync('src', 'dist', {
  recursive: true,
  filter: (path) =>
    ['.avsc', '.wasm', '.yaml'].includes(extname(path)) ||
    (statSync(path).isDirectory() &&
      !path.endsWith('ops/page') &&
      !path.endsWith('transcoder/wasm')),
});
chmodSync('dist/cli.js', 0o755);

const { descriptionFormat } = await import('../dist/description/format.js');
const schema = z.toJSONSchema(descriptionFormat, { io: 'input' });
writeFileSync('dist/description/description.schema.json', `${JSON.stringify(schema, null, 2)}\n`);
