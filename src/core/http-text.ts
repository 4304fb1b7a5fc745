// Text helpers shared by the HTTP clients of the API, of OAuth token endpoints and of the schema registry.

/**
 * Returns the value of an `authorization` or `proxy-authorization` header for HTTP Basic (RFC 7617). It contains the password: never log
 * it.
 */
export function basicAuth(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}

/** Parses a JSON object or array. Returns undefined for any other text, such as a web page. */
export function objectIn(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>;
  } catch {
    // not JSON
  }
  return undefined;
}
