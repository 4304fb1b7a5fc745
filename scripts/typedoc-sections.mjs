// A plugin of TypeDoc: the sections of src/index.ts (`// Token`, `// Quota`, ...) become those of the API reference,
// in their order, so that what belongs together stands together.
import { readFileSync } from 'node:fs';
import { CommentTag, Converter } from 'typedoc';

const INDEX = new URL('../src/index.ts', import.meta.url);
const MODULE = 'cellarstream';

/** @param {import('typedoc').Application} app */
export function load(app) {
  const sections = sectionsOf(readFileSync(INDEX, 'utf8'));
  app.on('bootstrapEnd', () => {
    app.options.setValue('categoryOrder', [...new Set(sections.values())]);
  });
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    const index = project.children?.find(({ name }) => name === MODULE);
    for (const exported of index?.children ?? []) {
      const section = sections.get(exported.name);
      if (section === undefined) continue;
      // Functions have their comments at their signatures. An export without a comment gets none: it is to be told of.
      for (const { comment } of [exported, ...(exported.signatures ?? [])]) {
        comment?.blockTags.push(new CommentTag('@category', [{ kind: 'text', text: section }]));
      }
    }
  });
}

/**
 * The section that each export stands in.
 *
 * @param {string} index
 */
function sectionsOf(index) {
  /** @type {Map<string, string>} */
  const sections = new Map();
  for (const part of index.split(/^\/\/ /m).slice(1)) {
    const [title = ''] = part.split('\n', 1);
    for (const [, names = ''] of part.matchAll(/^export (?:type )?\{([^}]*)\}/gm)) {
      for (const name of names.split(',')) {
        if (name.trim()) sections.set(name.trim().replace(/^.* as /, ''), title);
      }
    }
  }
  return sections;
}
