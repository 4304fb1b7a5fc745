import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The status page, and what of it a browser may run. */
export interface Page {
  readonly html: string;
  /** As a Content-Security-Policy names them: `'sha256-...'`. */
  readonly scriptHashes: string[];
  readonly styleHashes: string[];
}

/** Of the only account, of a fleet, and of one account of it: each is one file, with its script and its style in it. */
export type PageName = 'page' | 'fleet' | 'account';

/** Built beside the compiled code by scripts/build-page.mjs. */
export function loadPage(page: PageName | URL): Page {
  const file = page instanceof URL ? page : new URL(`../${page}.html`, import.meta.url);
  return pageOf(readFileSync(fileURLToPath(file), 'utf8'));
}

export function pageOf(html: string): Page {
  return {
    html,
    scriptHashes: hashesOf(html, /<script\b[^>]*>([\s\S]*?)<\/script>/g),
    styleHashes: hashesOf(html, /<style\b[^>]*>([\s\S]*?)<\/style>/g),
  };
}

function hashesOf(html: string, element: RegExp): string[] {
  return [...html.matchAll(element)].map(
    ([, text = '']) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`,
  );
}
