import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { RESOURCES } from '../../src/sandbox/index.ts';
import { allReady, FEW, settingsFor } from '../integration/support/all-lists.ts';
import { TIMEOUT } from '../integration/support/running-test.ts';
import { cliForTest, folderForTest, sandboxForTest } from '../integration/support/service.ts';
import { cached } from './cache.ts';

const AVRO_TOOLS = '1.12.2';
const PARSER = ['@asyncapi/parser@3.6.6', '@asyncapi/avro-schema-parser@3.1.0'];

interface Document {
  readonly channels: Readonly<
    Record<string, { readonly messages: { readonly event: { readonly payload?: Payload } } }>
  >;
}

interface Payload {
  readonly schema: object;
}

/** The part of the parser's interface that the test uses. */
interface AsyncApiParser {
  registerSchemaParser(parser: unknown): void;
  parse(text: string): Promise<{
    readonly document?: unknown;
    readonly diagnostics: readonly { readonly severity: number; readonly message: string }[];
  }>;
}

let text: string;
let document: Document;

/** Prints the document of a service that has registered the schemas of all lists. */
async function printed(): Promise<string> {
  const sandbox = await sandboxForTest({ records: FEW });
  const env = settingsFor(sandbox, 'asyncapi');
  const service = cliForTest(['run'], env);
  await allReady(service);
  return vi.waitFor(
    async () => {
      const cli = cliForTest(['asyncapi'], env);
      await cli.succeeded();
      const { channels } = JSON.parse(cli.stdout()) as Document;
      for (const list of RESOURCES) expect(channels[list]!.messages.event.payload).toBeDefined();
      return cli.stdout();
    },
    { timeout: 120_000 },
  );
}

it(
  'the AsyncAPI document of registered schemas is valid by the parser of AsyncAPI',
  TIMEOUT,
  async () => {
    text = await printed();
    document = JSON.parse(text) as Document;
    const folder = cached(`asyncapi-${PARSER[0]!.split('@').at(-1)!}`, (to) => [
      ...[
        'npm',
        'install',
        '--prefix',
        to,
        '--no-audit',
        '--ignore-scripts',
        '--silent',
        ...PARSER,
      ],
    ]);
    const load = createRequire(join(folder, 'package.json'));
    const { Parser } = load('@asyncapi/parser') as { readonly Parser: new () => AsyncApiParser };
    const avro = load('@asyncapi/avro-schema-parser') as {
      readonly AvroSchemaParser: () => unknown;
    };
    const parser = new Parser();
    parser.registerSchemaParser(avro.AvroSchemaParser());
    const { diagnostics, document: parsed } = await parser.parse(text);
    const ERROR = 0;
    expect(diagnostics.filter(({ severity }) => severity === ERROR)).toEqual([]);
    expect(parsed).toBeDefined();
  },
);

it('Java classes of all topics are generated in one run, and compile', TIMEOUT, () => {
  const jars = cached(`avro-tools-${AVRO_TOOLS}`, (to) => [
    ...['mvn', '-q', '-B', 'dependency:copy', `-DoutputDirectory=${to}`],
    `-Dartifact=org.apache.avro:avro-tools:${AVRO_TOOLS}`,
  ]);
  const jar = join(jars, `avro-tools-${AVRO_TOOLS}.jar`);
  const folder = folderForTest();
  const [schemas, sources, classes] = ['schemas', 'sources', 'classes'].map((name) => {
    mkdirSync(join(folder, name));
    return join(folder, name);
  }) as [string, string, string];
  for (const [topic, { messages }] of Object.entries(document.channels)) {
    writeFileSync(join(schemas, `${topic}.avsc`), JSON.stringify(messages.event.payload!.schema));
  }
  execFileSync('java', ['-jar', jar, 'compile', '-string', 'schema', schemas, sources]);
  const files = readdirSync(sources, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.java'))
    .map((file) => join(sources, file));
  for (const list of RESOURCES) {
    const name = list.replaceAll('-', '_');
    expect(files).toContain(join(sources, `cellarstream/${name}/Envelope.java`));
  }
  execFileSync('javac', ['-nowarn', '-d', classes, '-cp', jar, ...files], { stdio: 'pipe' });
});
