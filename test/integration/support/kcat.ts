import { execFile, spawnSync } from 'node:child_process';
import { promisify } from 'node:util';
import type { StoredRecord } from './stored-record.ts';

const run = promisify(execFile);
const MAX_OUTPUT_BYTES = 2 ** 28;

/** Whether there is one on the PATH: librdkafka's command line. */
export const hasKcat = spawnSync('kcat', ['-V']).status === 0;

/** Sizes before bytes, so that no byte needs an escape. A size of -1 is null. */
const FORMAT = '%p %o %T %K %S %h\n%k%s\n';

/** What librdkafka reads of what is committed in a topic, up to its end. */
export async function kcatRead(broker: string, topic: string): Promise<StoredRecord[]> {
  const { stdout, stderr } = await run(
    'kcat',
    [
      ...['-C', '-q', '-e', '-b', broker, '-t', topic, '-o', 'beginning', '-f', FORMAT],
      ...['-X', 'isolation.level=read_committed', '-X', 'check.crcs=true'],
    ],
    { encoding: 'buffer', maxBuffer: MAX_OUTPUT_BYTES },
  );
  if (stderr.length > 0) throw new Error(`kcat complains: ${stderr.toString()}`);
  const records: StoredRecord[] = [];
  for (let at = 0; at < stdout.length;) {
    const lineEnd = stdout.indexOf('\n', at);
    const [partition, offset, timestamp, keySize, valueSize, ...headers] = stdout
      .subarray(at, lineEnd)
      .toString()
      .split(' ');
    at = lineEnd + 1;
    const take = (size: number) => {
      const from = at;
      at += Math.max(0, size);
      return size < 0 ? null : stdout.subarray(from, at);
    };
    const key = take(Number(keySize));
    const value = take(Number(valueSize));
    at += 1; // the end of the line
    records.push({
      partition: Number(partition),
      offset: Number(offset),
      timestamp: Number(timestamp),
      key,
      value,
      headers: headersOf(headers.join(' ')),
    });
  }
  return records;
}

/** Of `a=1,b=2`: neither comma nor equals sign stands in what is written here. */
function headersOf(text: string): StoredRecord['headers'] {
  if (text === '') return [];
  return text.split(',').map((header) => header.split('=') as [string, string]);
}
