import { readdirSync } from 'node:fs';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { codeBlocks, docExamples, TEXTS } from './code-blocks.ts';
import { ENTRIES } from './entries.ts';
import { pathOf, text } from './texts.ts';

/** What the examples and the guides are written in: their code, and what it takes for granted. */
const CODE = [
  ...readdirSync(pathOf('examples'))
    .filter((file) => file.endsWith('.mjs'))
    .map((file) => text(`examples/${file}`)),
  ...TEXTS.flatMap((file) => codeBlocks(file)).map(({ given, code }) => `${given}\n${code}`),
];

/** `name` of `entry`, for messages. */
const place = (entry: string, name: string) => `${name} of ${entry}`;

/** Names that a program imports from the package, types included. */
function importsIn(code: string): string[] {
  const named = /(?:import|@import)(?: type)? \{([^}]*)\} from '(cellarstream[\w/]*)'/g;
  const inline = /import\('(cellarstream[\w/]*)'\)\.(\w+)/g;
  return [
    ...[...code.matchAll(named)].flatMap(([, names = '', entry = '']) =>
      names
        .split(',')
        .map((name) => name.trim().replace(/^type /, ''))
        .filter((name) => name !== '')
        .map((name) => place(entry, name)),
    ),
    ...[...code.matchAll(inline)].map(([, entry = '', name = '']) => place(entry, name)),
  ];
}
const USED = new Set(CODE.flatMap(importsIn));

/** The sandbox is a program of its own, whose names are its own. */
const LIBRARY = [...ENTRIES].filter(([entry]) => entry !== 'cellarstream/sandbox');

describe('what is exported', () => {
  it.each(LIBRARY)('%s: each value is used by a guide or an example', async (entry, source) => {
    const values = Object.keys((await import(pathOf(source))) as object);
    expect(values.length).toBeGreaterThan(0);
    expect(values.filter((name) => !USED.has(place(entry, name)))).toEqual([]);
  });

  it('each type is used by them, or stands in a signature', () => {
    const { exported, reached } = reachedBy(USED);
    expect([...exported].filter((name) => !reached.has(name))).toEqual([]);
  });

  it('is exported once', () => {
    const { exported } = reachedBy(USED);
    const names = exported.map((where) => where.split(' ')[0]);
    expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
  });
});

describe('the eleven to start with', () => {
  const FIRST = /^\/\/ Start here\n((?:export .*\n)+)/m;
  const first = [...ENTRIES].flatMap(([entry, source]) => {
    const [, lines = ''] = FIRST.exec(text(source)) ?? [];
    return [...lines.matchAll(/\{ (\w+) \}/g)].map(([, name = '']) => place(entry, name));
  });

  it('are eleven, of every entry', () => {
    expect(first).toHaveLength(11);
    expect(new Set(first.map((where) => where.split(' of ')[1]))).toEqual(new Set(ENTRIES.keys()));
  });

  it('have an example each', () => {
    const shown = new Set(docExamples().flatMap(({ code }) => importsIn(code)));
    expect(first.filter((where) => !shown.has(where))).toEqual([]);
  });
});

/** The places of what the library exports, and of what can be reached from what is used, by its declarations alone. */
function reachedBy(used: ReadonlySet<string>) {
  // Declarations have no bodies and no initialisers: what they name is what a user can meet.
  const files = LIBRARY.map(
    ([entry, source]) =>
      [entry, pathOf(source.replace('src/', 'dist/').replace(/\.ts$/, '.d.ts'))] as const,
  );
  const program = ts.createProgram(
    files.map(([, file]) => file),
    { module: ts.ModuleKind.NodeNext, skipLibCheck: true, types: ['node'] },
  );
  const checker = program.getTypeChecker();
  const original = (symbol: ts.Symbol) =>
    symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
  const places = files.flatMap(([entry, file]) => {
    const module = checker.getSymbolAtLocation(program.getSourceFile(file)!)!;
    return checker
      .getExportsOfModule(module)
      .map((symbol) => ({ where: place(entry, symbol.name), symbol: original(symbol) }));
  });

  const seen = new Set<ts.Symbol>();
  const visit = (symbol: ts.Symbol): void => {
    if (seen.has(symbol)) return;
    seen.add(symbol);
    const walk = (node: ts.Node): void => {
      const named = ts.isIdentifier(node) ? checker.getSymbolAtLocation(node) : undefined;
      if (named && isOurs(original(named))) visit(original(named));
      ts.forEachChild(node, walk);
    };
    for (const declaration of symbol.declarations ?? []) walk(declaration);
  };
  for (const { where, symbol } of places) if (used.has(where)) visit(symbol);
  return {
    exported: places.map(({ where }) => where),
    reached: new Set(places.filter(({ symbol }) => seen.has(symbol)).map(({ where }) => where)),
  };
}

function isOurs({ declarations }: ts.Symbol): boolean {
  return declarations?.[0]?.getSourceFile().fileName.startsWith(pathOf('dist')) ?? false;
}
