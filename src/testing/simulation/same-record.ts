/** Whether a row's text holds this record. Stores may add whitespace and reorder fields. */
export function isSameRecord(text: string, record: unknown): boolean {
  return toCanonicalJson(JSON.parse(text)) === toCanonicalJson(record)
}

function toCanonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  )
}
