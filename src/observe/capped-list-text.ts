/** Returns the text of a warning about a list that seems to end too early. `offset`: list offset of the apparent end. */
export function cappedListText(offset: number): string {
  return `the API appears to serve only the first ${offset} records of the list: records beyond are not published as deleted, and no full scan is exact. Ask the API's operators to lift the limit`;
}
