import { javaTool } from './java-tool.ts';

/** A record as `kafka-dump-log` prints it. */
export interface DumpedRecord {
  readonly offset: number;
  readonly timestamp: number;
  readonly keySize: number;
  readonly valueSize: number;
  readonly sequence: number;
  readonly headerNames: readonly string[];
  /** As text; undefined where it is null. */
  readonly key: string | undefined;
  readonly value: string | undefined;
}

/** A record batch as `kafka-dump-log` prints it. */
export interface DumpedBatch {
  readonly file: string;
  /** `baseOffset`, `producerId`, `isTransactional`, `compresscodec`, `isvalid` and so on. */
  readonly fields: Readonly<Record<string, string>>;
  readonly records: readonly DumpedRecord[];
  /** Of a transaction's marker. */
  readonly marker: 'COMMIT' | 'ABORT' | undefined;
}

const RECORD =
  /^\| offset: (\d+) CreateTime: (\d+) keySize: (-?\d+) valueSize: (-?\d+) sequence: (-?\d+) headerKeys: \[(.*?)\](?: key: (.*?))?(?: payload: (.*))?$/s;
const MARKER = /^\| offset: \d+ .* endTxnMarker: (COMMIT|ABORT) coordinatorEpoch: \d+$/;
const EXPECTED = /^(?:Dumping .*|Log starting offset: 0)$/;

/**
 * The batches of a broker's log segments.
 *
 * @throws Error when the tool says anything else than batches and records: that is a complaint.
 */
export async function dumpedLog(
  java: string,
  classPath: readonly string[],
  files: readonly string[],
): Promise<DumpedBatch[]> {
  const { stdout, stderr } = await javaTool(java, classPath, [
    'kafka.tools.DumpLogSegments',
    ...['--deep-iteration', '--print-data-log', '--files', files.join()],
  ]);
  if (stderr !== '') throw new Error(`kafka-dump-log complains: ${stderr}`);
  const batches: (DumpedBatch & { records: DumpedRecord[] })[] = [];
  let file = '';
  for (const line of stdout.toString().split('\n').slice(0, -1)) {
    if (line.startsWith('Dumping ')) file = line.slice('Dumping '.length);
    if (line.startsWith('baseOffset: ')) {
      const pairs = [...line.matchAll(/(\w+): (\S+)/g)].map(([, name, text]) => [name, text]);
      const fields = Object.fromEntries(pairs) as Record<string, string>;
      batches.push({ file, fields, records: [], marker: undefined });
    } else if (MARKER.test(line)) {
      const marker = MARKER.exec(line)![1] as 'COMMIT' | 'ABORT';
      batches.push({ ...batches.pop()!, marker });
    } else if (RECORD.test(line)) {
      batches.at(-1)!.records.push(recordOf(RECORD.exec(line)!));
    } else if (!EXPECTED.test(line)) {
      throw new Error(`kafka-dump-log complains: ${line.slice(0, 500)}`);
    }
  }
  return batches;
}

function recordOf(found: RegExpExecArray): DumpedRecord {
  const [, offset, timestamp, keySize, valueSize, sequence, names, key, value] = found;
  return {
    offset: Number(offset),
    timestamp: Number(timestamp),
    keySize: Number(keySize),
    valueSize: Number(valueSize),
    sequence: Number(sequence),
    headerNames: names === '' ? [] : names!.split(','),
    key,
    value,
  };
}
