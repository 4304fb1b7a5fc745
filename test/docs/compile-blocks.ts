import ts from 'typescript';
import type { CodeBlock } from './code-blocks.ts';
import { ENTRIES } from './entries.ts';
import { pathOf } from './texts.ts';

/** As strict as a careful user of the package is. */
const OPTIONS: ts.CompilerOptions = {
  strict: true,
  noEmit: true,
  skipLibCheck: true,
  allowJs: true,
  checkJs: true,
  allowImportingTsExtensions: true,
  target: ts.ScriptTarget.ES2022,
  lib: ['lib.es2024.d.ts'],
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  types: ['node'],
  paths: Object.fromEntries([...ENTRIES].map(([name, source]) => [name, [pathOf(source)]])),
};

/** What JavaScript could only mend with annotations: implicit any, possibly null or undefined, unknown. */
const UNANNOTATED = new Set([
  2531, 2532, 2533, 2571, 7005, 7006, 7031, 7034, 18046, 18047, 18048, 18049,
]);

/**
 * What the compiler has against blocks of TypeScript and JavaScript, as `file:line: message`; empty
 * when nothing. One program for all, so that the package is read once; no block sees another.
 */
export function complaints(blocks: readonly CodeBlock[]): string[] {
  const isPlain = ({ language }: CodeBlock) => language.startsWith('j');
  const sources = new Map(
    blocks.map((block, at) => {
      const extension = isPlain(block) ? 'js' : 'ts';
      return [pathOf(`test/docs/block-${at}.${extension}`), block]; // only ever in memory
    }),
  );
  const contents = ({ given, code }: CodeBlock) => `${prelude(given)}${code}\nexport {};\n`;

  const disk = ts.createCompilerHost(OPTIONS);
  const host: ts.CompilerHost = {
    ...disk,
    fileExists: (path) => sources.has(path) || disk.fileExists(path),
    readFile: (path) => {
      const block = sources.get(path);
      return block ? contents(block) : disk.readFile(path);
    },
    getSourceFile: (path, version, ...rest) => {
      const block = sources.get(path);
      if (!block) return disk.getSourceFile(path, version, ...rest);
      return ts.createSourceFile(path, contents(block), version);
    },
  };

  const program = ts.createProgram([...sources.keys()], OPTIONS, host);
  return [...sources].flatMap(([path, block]) => {
    const source = program.getSourceFile(path)!;
    const found = [
      ...program.getSyntacticDiagnostics(source),
      ...program.getSemanticDiagnostics(source),
    ].filter(({ code }) => !(isPlain(block) && UNANNOTATED.has(code)));
    return found.map(({ start = 0, messageText }) => {
      const at = source.getLineAndCharacterOfPosition(start).line;
      const line = block.line + at - lines(prelude(block.given));
      const message = ts.flattenDiagnosticMessageText(messageText, '\n');
      return `${block.file}:${Math.max(line, block.line)}: ${message}`;
    });
  });
}

function prelude(given: string): string {
  return given ? `${given}\n` : '';
}

function lines(code: string): number {
  return code.split('\n').length - 1;
}
