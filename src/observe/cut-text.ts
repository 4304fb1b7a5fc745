/** Warning for the operator about a list that seems to end before its last record. */
export function cutText(offset: number): string {
  return `the API seems to show no record behind the first ${offset} of the list, though there may be more: missing ones are not published as deleted, and no reading is exact. Ask the API's operators for a list without that limit`;
}
