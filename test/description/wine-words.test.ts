import { readdirSync } from 'node:fs';
import { expect, it } from 'vitest';
import { pathOf, text } from '../docs/texts.ts';

/** Words of the wine API that are also words of the service, and the contract or standard that they come from. */
const OWN_WORDS = new Set([
  ...['updated_at', 'total_records'], // fields of events and certificates
  ...['pageSize', 'apiKey', 'accessToken'], // local names; the last is one that logs hide
  ...['API_LOGIN_URL', 'api_key', 'timeOf'], // words of the format of descriptions
  'expiresIn', // of OAuth 2 clients
]);
/** Files that may know some fields, because they are about a contract with programs that consume the wine API's topics. */
const ABOUT_WINE = new Map<string, readonly string[]>([
  // The wire form of requests on the signals topic.
  ...[
    'account/signal-jobs',
    'commands/resync',
    'pipeline/reads/resync-reads',
    'sinks/signals/signals',
  ].map((file) => [`${file}.ts`, ['order_number']] as const),
  // The consumer of the wine API's status changes.
  ['consumers/order-status-changes.ts', ['order_number', 'payment_status', 'shipment_status']],
  // The text is part of the schema that is registered for events.
  ['schemas/events/envelope.ts', ['fulfillment_info']],
]);

/** Names with an underscore or an inner capital: other words, such as `status`, are common to many APIs. */
const isDistinct = (word: string) => /_|[a-z][A-Z]/.test(word);
const wordsOf = (file: string) =>
  new Set(
    text(file)
      .match(/[A-Za-z_]+/g)!
      .filter(isDistinct),
  );

function fieldsIn(schema: unknown): string[] {
  if (typeof schema !== 'object' || schema === null) return [];
  const { fields = [] } = schema as { fields?: { json?: string; name: string }[] };
  const names = Array.isArray(fields) ? fields.map(({ json, name }) => json ?? name) : [];
  return [...names, ...Object.values(schema).flatMap(fieldsIn)];
}

it('no file outside src/description/wine and src/sandbox knows a field of the wine API', () => {
  const wine = new Set([
    ...fieldsIn(JSON.parse(text('src/description/wine/order.avsc'))).filter(isDistinct),
    ...wordsOf('src/description/wine/wine.yaml'),
  ]);
  const files = readdirSync(pathOf('src'), { recursive: true, encoding: 'utf8' }).filter(
    (file) => /\.(ts|html|css)$/.test(file) && !/^(description\/wine|sandbox)\//.test(file),
  );
  expect(wine.size).toBeGreaterThan(40);
  expect(files.length).toBeGreaterThan(300);
  const known = files.flatMap((file) =>
    [...wordsOf(`src/${file}`)]
      .filter((word) => wine.has(word) && !OWN_WORDS.has(word))
      .filter((word) => !ABOUT_WINE.get(file)?.includes(word))
      .map((word) => `${file}: ${word}`),
  );
  expect(known).toEqual([]);
});
