/** PostgreSQL's text type cannot hold NUL. Keys and records are validated earlier; in other texts NUL is replaced. */
export function replaceNul(text: string): string
export function replaceNul(text: string | null): string | null
export function replaceNul(text: string | null): string | null {
  return text === null ? null : text.replaceAll('\0', '\ufffd')
}
