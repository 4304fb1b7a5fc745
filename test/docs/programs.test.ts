import ts from 'typescript';
import { expect, it } from 'vitest';
import { blocks, pathOf, text } from './texts.ts';

/** What the compiler has against a program of the package's users; empty when nothing. */
function complaints(program: string): string[] {
  const file = pathOf('test/docs/program.ts'); // only ever in memory
  const options: ts.CompilerOptions = {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    allowImportingTsExtensions: true,
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    types: ['node'],
    paths: {
      cellarstream: [pathOf('src/index.ts')],
      'cellarstream/sandbox': [pathOf('src/sandbox/index.ts')],
    },
  };
  const disk = ts.createCompilerHost(options);
  const host: ts.CompilerHost = {
    ...disk,
    fileExists: (path) => path === file || disk.fileExists(path),
    readFile: (path) => (path === file ? program : disk.readFile(path)),
    getSourceFile: (path, languageVersion, ...rest) =>
      path === file
        ? ts.createSourceFile(path, program, languageVersion)
        : disk.getSourceFile(path, languageVersion, ...rest),
  };
  return ts
    .getPreEmitDiagnostics(ts.createProgram([file], options, host))
    .filter((diagnostic) => diagnostic.file?.fileName === file)
    .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'));
}

it("the README's program compiles", { timeout: 60_000 }, () => {
  const [program] = blocks(text('README.md'), 'ts');
  expect(program).toContain("from 'cellarstream'");
  expect(complaints(program!)).toEqual([]);
});
