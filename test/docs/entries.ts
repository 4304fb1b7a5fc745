import { text } from './texts.ts';

const { exports } = JSON.parse(text('package.json')) as {
  exports: Record<string, string | { readonly types: string }>;
};

/** The source of each entry point of the package, by the name that it is imported by. */
export const ENTRIES: ReadonlyMap<string, string> = new Map(
  Object.entries(exports).flatMap(([path, entry]) =>
    typeof entry === 'string'
      ? [] // package.json itself
      : [[path.replace(/^\./, 'cellarstream'), sourceOf(entry.types)] as const],
  ),
);

/** `./dist/index.d.ts` is made of `src/index.ts`. */
function sourceOf(types: string): string {
  return types.replace(/^\.\/dist\//, 'src/').replace(/\.d\.ts$/, '.ts');
}
