// A plugin of TypeDoc: the sections of the entry points (`// Start here`, `// Topics`, ...) become those of the API
// reference, in the order of the file, so that what belongs together stands together. (A title has the same place in
// all files that have it.) What they begin with is listed on the first page.
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { CommentTag, Converter, PageEvent } from 'typedoc';

const FIRST = 'Start here';
/** A priority of listeners: behind TypeDoc's own, which makes the categories. */
const LAST = -1_000;

/** @param {import('typedoc').Application} app */
export function load(app) {
  /** @type {readonly Entry[]} */
  let entries = [];
  app.on('bootstrapEnd', () => {
    entries = app.options
      .getValue('entryPoints')
      .map((path) => entryOf(readFileSync(resolve(path), 'utf8')));
    const titles = entries.flatMap(({ sections }) => [...sections.values()]);
    app.options.setValue('categoryOrder', [...new Set(titles)]);
  });
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    for (const { exported, section } of sectioned(project, entries)) {
      // Functions have their comments at their signatures. An export without a comment gets none: it is to be told of.
      for (const { comment } of [exported, ...(exported.signatures ?? [])]) {
        comment?.blockTags.push(new CommentTag('@category', [{ kind: 'text', text: section }]));
      }
    }
  });
  app.converter.on(Converter.EVENT_RESOLVE_END, ({ project }) => inOrder(project, entries), LAST);
  app.renderer.on(PageEvent.END, (page) => {
    if (page.isReflectionEvent() && page.model.isProject()) {
      page.contents = firstPage(page.model, entries, app.renderer.router);
    }
  });
}

/**
 * Puts each section into the order of its entry's file.
 *
 * @param {import('typedoc').ProjectReflection} project
 * @param {readonly Entry[]} entries
 */
function inOrder(project, entries) {
  for (const { module, sections } of entries) {
    const names = [...sections.keys()];
    for (const { children } of moduleOf(project, module)?.categories ?? []) {
      children.sort((a, b) => names.indexOf(a.name) - names.indexOf(b.name));
    }
  }
}

/**
 * @param {import('typedoc').ProjectReflection} project
 * @param {readonly Entry[]} entries
 * @param {import('typedoc').Router | undefined} router
 */
function firstPage(project, entries, router) {
  const first = sectioned(project, entries).filter(({ section }) => section === FIRST);
  const functions = first.map(({ exported, module }) => {
    const name = `[\`${exported.name}\`](${router?.getFullUrl(exported)})`;
    return `| ${name} | \`${module}\` | ${sentence(exported.signatures?.[0]?.comment)} |`;
  });
  const modules = entries.map(({ module }) => {
    const reflection = moduleOf(project, module);
    const url = reflection && router?.getFullUrl(reflection);
    return `| [\`${module}\`](${url}) | ${sentence(reflection?.comment)} |`;
  });
  const start = [
    `## ${FIRST}`,
    '',
    '| function | of | does |',
    '| --- | --- | --- |',
    ...functions,
  ];
  const all = ['## All of it', '', '| module | is |', '| --- | --- |', ...modules];
  return [`# ${project.name}`, '', ...start, '', ...all, ''].join('\n');
}

/**
 * The first one.
 *
 * @param {import('typedoc').Comment | undefined} comment
 */
function sentence(comment) {
  const text = comment?.summary.map(({ text }) => text).join('') ?? '';
  return text.replace(/\s+/g, ' ').split(/(?<=\.) /)[0] ?? '';
}

/**
 * @param {import('typedoc').ProjectReflection} project
 * @param {string} module
 */
function moduleOf(project, module) {
  return project.children?.find(({ name }) => name === module);
}

/**
 * @typedef {object} Entry
 * @property {string} module As it is imported.
 * @property {ReadonlyMap<string, string>} sections The one that each export stands in, by its name.
 */

/**
 * What the entry points export, in the order of their files.
 *
 * @param {import('typedoc').ProjectReflection} project
 * @param {readonly Entry[]} entries
 */
function sectioned(project, entries) {
  return entries.flatMap(({ module, sections }) => {
    const children = moduleOf(project, module)?.children ?? [];
    return [...sections].flatMap(([name, section]) =>
      children
        .filter((child) => child.name === name)
        .map((exported) => ({ module, exported, section })),
    );
  });
}

/**
 * @param {string} source
 * @returns {Entry}
 */
function entryOf(source) {
  /** @type {Map<string, string>} */
  const sections = new Map();
  for (const part of source.split(/^\/\/ /m).slice(1)) {
    const [title = ''] = part.split('\n', 1);
    for (const [, names = ''] of part.matchAll(/^export (?:type )?\{([^}]*)\}/gm)) {
      for (const name of names.split(',')) {
        if (name.trim()) sections.set(name.trim().replace(/^.* as /, ''), title);
      }
    }
  }
  return { module: /^ \* @module (\S+)$/m.exec(source)?.[1] ?? '', sections };
}
