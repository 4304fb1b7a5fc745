import type { Chance } from '../../support/chance.ts';
import { SentNumber } from './json-model.ts';
import type { Json, JsonMembers } from './json-model.ts';

/**
 * A JSON text that says this and nothing else, written as no two servers would: members in any
 * order, some given twice (the last one counts), spaces where they may be, characters escaped that
 * need not be. Half a surrogate pair is always escaped.
 */
export function oddText(value: Json, chance: Chance): string {
  if (typeof value === 'string') return stringText(value, chance);
  if (value instanceof SentNumber) return value.text;
  if (value instanceof Map) return objectText(value, chance);
  if (!Array.isArray(value)) return JSON.stringify(value);
  const items = (value as readonly Json[]).map((item) => oddText(item, chance));
  return `[${gap(chance)}${items.join(`,${gap(chance)}`)}]`;
}

function objectText(members: JsonMembers, chance: Chance): string {
  const texts = chance.shuffled(members).map(([name, value]) => memberText(name, value, chance));
  if (texts.length > 0 && chance.is(0.03)) {
    // Before all of the others: what stands last for a name is what it means.
    const name = chance.pick([...members.keys()]);
    texts.unshift(memberText(name, chance.pick(DECOYS), chance));
  }
  return `{${gap(chance)}${texts.join(',')}${gap(chance)}}`;
}

const DECOYS: readonly Json[] = [
  ...[null, false, 'decoy', [], new Map([['decoy', true]])],
  new SentNumber('-1'),
  new SentNumber('12345678901234567890'),
];

function memberText(name: string, value: Json, chance: Chance): string {
  return `${gap(chance)}${stringText(name, chance)}${gap(chance)}:${gap(chance)}${oddText(value, chance)}`;
}

function gap(chance: Chance): string {
  return chance.is(0.02) ? chance.pick([' ', '\n', '\t', '\r\n  ']) : '';
}

function stringText(text: string, chance: Chance): string {
  const plain = JSON.stringify(text);
  if (text.length > 100 || !chance.is(0.03)) return plain;
  return `"${Array.from({ length: text.length }, (_, at) => escaped(text.charCodeAt(at))).join('')}"`;
}

const escaped = (code: number) => `\\u${code.toString(16).padStart(4, '0')}`;
