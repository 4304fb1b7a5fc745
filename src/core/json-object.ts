/** Parses a JSON object or array; undefined for any other text, such as a web page. The caller reports what it expected instead. */
export function objectIn(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>;
  } catch {
    // not JSON
  }
  return undefined;
}
