import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { javaTool } from './java-tool.ts';
import type { StoredRecord } from './stored-record.ts';

/** What the console consumer is asked for. */
export interface ConsoleConsumerOptions {
  readonly java: string;
  readonly classPath: readonly string[];
  /** For the file that says how records are printed. */
  readonly folder: string;
  readonly broker: string;
  readonly topic: string;
  /** It ends when it has printed so many. */
  readonly count: number;
}

/** Texts that stand in no record. */
const FIELD = '<|field|>';
const HEADER = '<|header|>';
const RECORD = '<|record|>';
const NULL = '<|null|>';
const NO_HEADERS = 'NO_HEADERS';
/** Without another record, until it gives up. */
const PATIENCE_MS = 60_000;

const FORMAT = {
  'print.timestamp': 'true',
  'print.partition': 'true',
  'print.offset': 'true',
  'print.headers': 'true',
  'print.key': 'true',
  'key.separator': FIELD,
  'headers.separator': HEADER,
  'line.separator': RECORD,
  'null.literal': NULL,
};

/** What `kafka-console-consumer` prints of what is committed in a topic. */
export async function consoleConsumed(options: ConsoleConsumerOptions): Promise<StoredRecord[]> {
  const { java, classPath, folder, broker, topic, count } = options;
  const format = join(folder, 'formatter.properties');
  const lines = Object.entries(FORMAT).map(([name, value]) => `${name}=${value}\n`);
  await writeFile(format, lines.join(''));
  const { stdout } = await javaTool(java, classPath, [
    'org.apache.kafka.tools.consumer.ConsoleConsumer',
    ...['--bootstrap-server', broker, '--topic', topic, '--from-beginning'],
    ...['--isolation-level', 'read_committed', '--formatter-config', format],
    ...['--max-messages', String(count), '--timeout-ms', String(PATIENCE_MS)],
  ]);
  return split(stdout, RECORD).slice(0, -1).map(recordOf);
}

function recordOf(printed: Buffer): StoredRecord {
  const [time, partition, offset, headers, key, value] = split(printed, FIELD);
  const number = (text: Buffer | undefined, prefix: string) => {
    if (!text?.toString().startsWith(prefix)) throw new Error(`${String(text)} is no ${prefix}`);
    return Number(text.subarray(prefix.length).toString());
  };
  return {
    timestamp: number(time, 'CreateTime:'),
    partition: number(partition, 'Partition:'),
    offset: number(offset, 'Offset:'),
    headers:
      headers!.toString() === NO_HEADERS
        ? []
        : split(headers!, HEADER).map((header) => {
            const [name = '', ...text] = header.toString().split(':');
            return [name, text.join(':')] as const;
          }),
    key: orNull(key!),
    value: orNull(value!),
  };
}

function orNull(bytes: Buffer): Buffer | null {
  return bytes.equals(Buffer.from(NULL)) ? null : bytes;
}

function split(bytes: Buffer, separator: string): Buffer[] {
  const parts: Buffer[] = [];
  for (let at = 0; ;) {
    const end = bytes.indexOf(separator, at);
    if (end < 0) return [...parts, bytes.subarray(at)];
    parts.push(bytes.subarray(at, end));
    at = end + separator.length;
  }
}
