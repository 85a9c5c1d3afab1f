/** PostgreSQL's text knows no NUL. Keys and records are checked before they come here; notes beside them are mended. */
export function replaceNul(text: string): string
export function replaceNul(text: string | null): string | null
export function replaceNul(text: string | null): string | null {
  return text === null ? null : text.replaceAll('\0', '\ufffd')
}
