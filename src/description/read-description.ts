// Reads a description file (YAML or JSON) and reports all its mistakes at once, each with its line and column.

import { readFileSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import avro from 'avsc';
import { isAlias, isMap, isNode, isScalar, isSeq, LineCounter, parseDocument, visit } from 'yaml';
import type { Document } from 'yaml';
import { z } from 'zod';
import { CellarstreamError, describeError } from '../core/errors.ts';
import { listNamespace } from '../schemas/avro/avro-name.ts';
import { loadSchema } from '../schemas/avro/avro-schema.ts';
import type { RecordSchema } from '../schemas/avro/avro-schema.ts';
import { statusChangeSchema } from '../schemas/events/own-records.ts';
import { listsOf, pathNames, problemsOf, settingUses, statusTopicOf } from './checks.ts';
import type { Path, Problem } from './checks.ts';
import type { ApiDescription, ListDescription } from './description.ts';
import { descriptionFormat, expected } from './format.ts';
import type { DescriptionFile, ListFile } from './format.ts';
import { timeFormat } from './time-format.ts';

/**
 * Reads and validates a description file.
 *
 * @param path Path of the file. Its `.avsc` files are read from the same folder.
 * @throws CellarstreamError `SETTINGS`, with a line `file:line:column place: what is wrong and what to do` for each reported mistake.
 */
export function readDescription(path: string): ApiDescription {
  let text;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new CellarstreamError(
      'SETTINGS',
      `the description ${path} can't be read (${code}): check the path and the rights of the file`,
    );
  }
  return parseDescription(text, path);
}

/**
 * Parses and validates the text of a description.
 *
 * @param path Path of the file: appears in messages; `.avsc` files are read from the same folder.
 * @throws CellarstreamError as {@link readDescription} does.
 */
export function parseDescription(text: string, path: string): ApiDescription {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const at = (position: number) => {
    const { line, col } = lines.linePos(position);
    return `${basename(path)}:${line}:${col}`;
  };
  const [first] = document.errors;
  if (first) throw invalid([`${at(first.pos[0])} ${first.message.split('\n')[0]!}`]);
  if (document.contents === null) {
    throw invalid([`${at(0)} the file is empty; expected format, api, auth, quota and lists`]);
  }

  const wrongAlias = wrongAliasIn(document);
  if (wrongAlias) throw invalid([`${at(wrongAlias.position)} ${wrongAlias.message}`]);

  const schemas = new Map<string, RecordSchema>();
  const { data, error } = descriptionFormat.safeParse(contentOf(document, at(0)), {
    error: messageOf,
  });
  const problems = data
    ? [...loadSchemas(data, dirname(path), schemas), ...problemsOf(data, schemas)]
    : error.issues.flatMap(problemsOfIssue);
  const placed = <T extends Problem>(each: T) => ({
    ...each,
    position: positionOf(document, each),
  });
  const lineOf = (each: ReturnType<typeof placed>) => `${at(each.position)} ${textOf(each)}`;
  if (data && problems.length === 0) {
    const uses = settingUses(data).map((use) => [use.setting, lineOf(placed(use))] as const);
    return { ...descriptionOf(data, schemas), settingUses: Object.fromEntries(uses) };
  }
  const sorted = problems.map(placed).sort((one, other) => one.position - other.position);
  throw invalid(sorted.map(lineOf));
}

/** Returns the first wrong YAML alias: it has no anchor, or is inside the node that it refers to. Undefined if there is none. */
function wrongAliasIn(document: Document): { position: number; message: string } | undefined {
  let found: ReturnType<typeof wrongAliasIn>;
  visit(document, {
    Alias: (_, alias, ancestors) => {
      const { source } = alias;
      const position = alias.range?.[0] ?? 0;
      const node = alias.resolve(document);
      const isInside = node && ancestors.includes(node);
      if (node && !isInside) return undefined;
      const mistake = isInside
        ? `is inside of the value that its anchor &${source} marks, so that the value would contain itself`
        : `has no anchor &${source} before it`;
      found = { position, message: `the YAML alias *${source} ${mistake}` };
      return visit.BREAK;
    },
  });
  return found;
}

/**
 * Returns the content of a document as plain values.
 *
 * @param place File, line and column of the document, as `shop.yaml:1:1`; the error begins with it.
 * @throws CellarstreamError `SETTINGS` if the document's aliases expand to too many nodes.
 */
function contentOf(document: Document, place: string): unknown {
  try {
    return document.toJS();
  } catch (error) {
    throw invalid([`${place} ${describeError(error)}`]);
  }
}

function invalid(lines: readonly string[]): CellarstreamError {
  return new CellarstreamError('SETTINGS', [...new Set(lines)].join('\n'));
}

/** Returns the path and the message of a problem, with a colon between them unless they form a sentence (`lists.orders needs ...`). */
function textOf({ path, message }: Problem): string {
  if (path.length === 0) return message;
  const isSentence = /^(?:is|needs|has|sends) /.test(message);
  return `${path.join('.')}${isSentence ? '' : ':'} ${message}`;
}

function messageOf(issue: z.core.$ZodRawIssue): string | undefined {
  const schema = issue.inst as z.ZodType | undefined;
  if (issue.code === 'unrecognized_keys' && schema instanceof z.ZodObject) {
    return `is not a property here; use one of ${Object.keys(schema.shape).join(', ')}`;
  }
  return expected(schema?.description ?? 'another value', issue.input);
}

/**
 * Converts a zod issue to problems. If a value fits no alternative of a union, the problems are those of the first alternative that
 * objects only to parts of the value. Without such an alternative, there is one problem for the whole value.
 */
function problemsOfIssue({ path, ...issue }: z.core.$ZodIssue): Problem[] {
  const place = path as Path;
  switch (issue.code) {
    case 'unrecognized_keys':
      return issue.keys.map((key) => {
        return { path: [...place, key], message: issue.message, isKey: true };
      });
    case 'invalid_key':
      return issue.issues.map(({ message }) => ({ path: place, message, isKey: true }));
    case 'invalid_union': {
      const closest = issue.errors.find((errors) => errors.every((each) => each.path.length > 0));
      if (closest) {
        return closest.flatMap((each) =>
          problemsOfIssue({ ...each, path: [...path, ...each.path] }),
        );
      }
    }
  }
  return [{ path: place, message: issue.message }];
}

/**
 * Returns the position in the file, in characters, of the value at `path` or, if `isKey`, of the last key in `path`. If the file
 * lacks this value or key, returns the position of the last part of `path` that the file has.
 */
function positionOf(document: Document, { path, isKey = false }: Problem): number {
  let node: unknown = document.contents;
  let position = startOf(node) ?? 0;
  for (const [index, name] of path.entries()) {
    if (isAlias(node)) node = node.resolve(document);
    const pair =
      isMap(node) && node.items.find(({ key }) => isScalar(key) && String(key.value) === name);
    node = pair ? pair.value : isSeq(node) ? node.items[Number(name)] : undefined;
    const isValue = index === path.length - 1 && !isKey;
    position =
      (isValue ? startOf(node) : undefined) ??
      (pair ? startOf(pair.key) : startOf(node)) ??
      position;
  }
  return position;
}

function startOf(node: unknown): number | undefined {
  return isNode(node) ? node.range?.[0] : undefined;
}

/**
 * Reads the `.avsc` files that a description names, and adds the schemas to `schemas`. Returns a problem for each file that can't be read
 * or is not a record schema.
 */
function loadSchemas(
  file: DescriptionFile,
  folder: string,
  schemas: Map<string, RecordSchema>,
): Problem[] {
  const problems: Problem[] = [];
  const load = (schemaFile: string | undefined, ...path: string[]) => {
    if (schemaFile === undefined) return;
    try {
      const schema = loadSchema(pathToFileURL(resolve(folder, schemaFile)));
      avro.Type.forSchema(schema as avro.Schema);
      schemas.set(schemaFile, schema);
      if (schema.type === 'record') return;
      problems.push({ path, message: `${schemaFile} is not a record schema` });
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      const reason = (code ?? message).split('\n')[0]!;
      const text = `${schemaFile} (path relative to the description) can't be read as an Avro schema: ${reason}`;
      problems.push({ path, message: text });
    }
  };
  for (const [name, { types, statuses }] of listsOf(file)) {
    load(types, 'lists', name, 'types');
    load(statuses?.schema, 'lists', name, 'statuses', 'schema');
  }
  return problems;
}

function descriptionOf(
  file: DescriptionFile,
  schemas: ReadonlyMap<string, RecordSchema>,
): Omit<ApiDescription, 'settingUses'> {
  const { api, auth, quota, parameters = [], headers = {}, errors = {}, measured } = file;
  const namespace = file.namespace ?? `cellarstream.${api.replaceAll('-', '_')}`;
  return {
    ...{ api, namespace, parameters, headers, errors, auth, quota },
    times: timeFormat(file.times ?? 'iso'),
    lists: listsOf(file).map(([name, list]) =>
      listOf(name, list, listNamespace(name, namespace), schemas),
    ),
    ...(measured && { measured }),
  };
}

function listOf(
  name: string,
  list: ListFile,
  namespace: string,
  schemas: ReadonlyMap<string, RecordSchema>,
): ListDescription {
  const { key, keys = [], one, statuses, updated = [], types, ...same } = list;
  const { path = '', query = {}, records = '', paging = 'none' } = list;
  return {
    ...same,
    ...{ name, namespace, path, query, records, paging },
    method: list.method ?? 'GET',
    first: list.first ?? (paging === 'page' ? 1 : 0),
    keyCandidates: (key === undefined ? keys : [key]).map((fields) => fields.split('+')),
    updated: [updated].flat(),
    one: one && {
      path: one.path ?? path,
      query: one.path === undefined ? { ...query, ...one.query } : (one.query ?? {}),
      record: one.record ?? (one.path === undefined ? records : ''),
      gone: one.gone ?? [404],
      digitsOnly: one.keys === 'digits',
    },
    arrays: list.arrays ?? {},
    statuses: statuses && {
      topic: statusTopicOf(name, statuses),
      schema: schemas.get(statuses.schema ?? '') ?? statusChangeSchema(namespace),
      subjects: Object.entries(statuses.subjects).map(subjectOf),
    },
    types: types === undefined ? undefined : schemas.get(types),
    agreed: list.agreed ?? false,
  };
}

type SubjectFile = NonNullable<ListFile['statuses']>['subjects'][string];

function subjectOf([name, { at = '', fields, time, timeOf }]: [string, SubjectFile]) {
  const isTimeOfNew = timeOf === 'new';
  return { name, path: pathNames(at), fields: fields.map(pathNames), time, isTimeOfNew };
}
