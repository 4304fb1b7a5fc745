import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathOf, text } from './texts.ts';

/** A fenced block of code in a text. */
export interface CodeBlock {
  /** From the package's root folder. */
  readonly file: string;
  /** Of the first line of its code, from 1. */
  readonly line: number;
  /** As the fence says it: `ts`, `js`, `sh`, ... */
  readonly language: string;
  readonly code: string;
  /**
   * What a fragment takes for granted: the code of the comment right before its fence,
   * `<!-- given: declare const kafka: Kafka; -->`, of as many lines as it likes.
   */
  readonly given: string;
  /** The name by which a test runs it: `<!-- program: shipping -->` right before its fence. */
  readonly program: string | undefined;
}

const FENCED =
  /(?:^<!--\s*(given|program):\s*((?:(?!-->).)*?)\s*-->\n+)?^```([\w-]+)\n(.*?)^```$/gms;

/** The texts for people, from the package's root folder; those that are generated are not among them. */
export const TEXTS = ['', 'docs/'].flatMap((folder) =>
  readdirSync(pathOf(folder || '.'))
    .filter((file) => file.endsWith('.md'))
    .map((file) => folder + file),
);

/** The blocks of a text, in their order. */
export function codeBlocks(file: string, markdown = text(file)): CodeBlock[] {
  return [...markdown.matchAll(FENCED)].map((match) => {
    const [whole, kind, remark = '', language = '', code = ''] = match;
    const start = match.index + whole.length - code.length - '```'.length;
    return {
      file,
      line: markdown.slice(0, start).split('\n').length,
      language,
      code,
      given: kind === 'given' ? remark : '',
      program: kind === 'program' ? remark : undefined,
    };
  });
}

const EXAMPLE = /^ \* @example\n \* ```([\w-]+)\n(.*?)^ \* ```$/gms;

/** The examples in the doc comments of `src`. */
export function docExamples(): CodeBlock[] {
  const files = readdirSync(pathOf('src'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => join('src', file));
  return files.flatMap((file) => {
    const source = text(file);
    return [...source.matchAll(EXAMPLE)].map(({ index, 1: language = '', 2: code = '' }) => ({
      file,
      line: source.slice(0, index).split('\n').length + 2,
      language,
      code: code.replace(/^ \* ?/gm, ''),
      given: '',
      program: undefined,
    }));
  });
}

/**
 * The block of a text that is marked as a program of this name.
 *
 * @throws Error when there is none.
 */
export function namedProgram(file: string, name: string): CodeBlock {
  const block = codeBlocks(file).find(({ program }) => program === name);
  if (!block) throw new Error(`${file} has no block marked <!-- program: ${name} -->`);
  return block;
}
