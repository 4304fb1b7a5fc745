import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { orderEvents } from '../../../src/consumers/wine-topics.ts';
import { startSandbox } from '../../../src/sandbox/index.ts';
import { createEnvelopeCodec } from '../../../src/schemas/events/envelope.ts';
import type { JsonObject } from '../../../src/schemas/json/json.ts';
import { orderSchema } from '../../../src/description/wine/order.ts';
import { pathOf } from '../../docs/texts.ts';
import { oddRecords } from '../../schemas/avro/odd-records.ts';
import { scaled } from '../../support/scale.ts';
import { orderSource } from '../../support/event-source.ts';

const GENERATOR = pathOf('scripts/generate-order-type.mjs');
const FILE = pathOf('src/description/wine/order-type.ts');

const text = readFileSync(FILE, 'utf8');
const codec = createEnvelopeCodec(orderSchema, 'orders');
const read = orderEvents(codec.schema);

/** What a consumer gets for a record of the API. */
function consumed(record: JsonObject) {
  const source = orderSource();
  const after = codec.values.encode(record);
  const event = { before: null, after, op: 'c', ts_ms: 0, changed: [], source } as const;
  return read(codec.encode(event)).after;
}

it('is what the generator makes of the schema', async () => {
  // Named at run time: the compiler need not know of it.
  const { imageType } = (await import(GENERATOR)) as {
    imageType: (schema: unknown, name: string) => Promise<string>;
  };
  expect(await imageType(orderSchema, 'Order')).toBe(text);
});

describe('what consumers get has the types that the file says, no more fields and no fewer', () => {
  it('for orders of the sandbox', async () => {
    const sandbox = await startSandbox({ seed: 7, records: { orders: 300 } });
    const orders = [...sandbox.truth.records('orders')] as JsonObject[];
    await sandbox.close();
    expect(orders).toHaveLength(300);
    for (const order of orders) expect(mismatches(consumed(order), 'Order')).toEqual([]);
    // Parts that only some orders have.
    for (const part of ['order_edit', 'club_package_info', 'tender_info'] as const) {
      expect(orders.some((order) => consumed(order)?.[part])).toBe(true);
    }
  });

  it('for orders as a careless API might send them', () => {
    fc.assert(
      fc.property(oddRecords(orderSchema), (record) => {
        expect(mismatches(consumed(record), 'Order')).toEqual([]);
      }),
      { seed: 3, numRuns: scaled(50, 500) },
    );
  });
});

/** The members of the file's interfaces, as they are written. */
const interfaces = new Map(
  ts
    .createSourceFile(FILE, text, ts.ScriptTarget.ES2022, true)
    .statements.filter(ts.isInterfaceDeclaration)
    .map(({ name, members }) => [name.text, members.filter(ts.isPropertySignature)]),
);

/** Where a value isn't of an interface of the file: by path, what was found instead. */
function mismatches(value: unknown, name: string, path = name): string[] {
  const members = interfaces.get(name)!;
  if (typeof value !== 'object' || value === null) return [`${path}: ${typeof value}`];
  const known = members.map((member) => member.name.getText());
  const strangers = Object.keys(value).filter((key) => !known.includes(key));
  const wrong = members.flatMap((member) => {
    const key = member.name.getText();
    if (!Object.hasOwn(value, key)) return [`${path}.${key}: missing`];
    return typeMismatches((value as JsonObject)[key], member.type!, `${path}.${key}`);
  });
  return [...strangers.map((key) => `${path}.${key}: not in the file`), ...wrong];
}

function typeMismatches(value: unknown, type: ts.TypeNode, path: string): string[] {
  const isNot = (right: boolean) => (right ? [] : [`${path}: ${typeof value}`]);
  if (ts.isUnionTypeNode(type)) {
    const tries = type.types.map((branch) => typeMismatches(value, branch, path));
    return tries.some((found) => found.length === 0) ? [] : tries.flat();
  }
  if (ts.isLiteralTypeNode(type)) return isNot(value === null);
  if (ts.isTypeOperatorNode(type)) return typeMismatches(value, type.type, path);
  if (ts.isArrayTypeNode(type)) {
    if (!Array.isArray(value)) return isNot(false);
    return value.flatMap((item, at) => typeMismatches(item, type.elementType, `${path}[${at}]`));
  }
  if (ts.isTypeReferenceNode(type)) {
    const name = type.typeName.getText();
    if (interfaces.has(name)) return mismatches(value, name, path);
    expect(type.getText()).toBe('Readonly<Record<string, string>>');
    return isNot(Object.values(value as JsonObject).every((item) => typeof item === 'string'));
  }
  switch (type.kind) {
    case ts.SyntaxKind.NumberKeyword:
      return isNot(typeof value === 'number');
    case ts.SyntaxKind.StringKeyword:
      return isNot(typeof value === 'string');
    case ts.SyntaxKind.BooleanKeyword:
      return isNot(typeof value === 'boolean');
    default:
      throw new Error(`no such type is generated: ${type.getText()}`);
  }
}
