import type { JsonValue } from '../../contract/index.ts'
import { CIPHERTEXT_PATTERN, type ColumnCipher } from '../../registry/column-cipher.ts'
import { isPlainObject } from '../../transforms/field-paths.ts'
import { parseJson } from '../../values/json.ts'

/** Rows with their encrypted values decrypted. */
export interface RevealedRows {
  readonly rows: readonly (readonly unknown[])[]
  /** Column → the number of values that are shown. */
  readonly revealed: ReadonlyMap<string, number>
  /** Values that no key of the tenant decrypts. */
  readonly unreadable: number
}

/** An encrypted value inside the JSON text of a column. */
const QUOTED_CIPHERTEXT = /"(encrypted\.1\.c[0-9a-f]{8}\.[\w-]+\.[\w-]+)"/g

export function revealRows(rows: readonly (readonly unknown[])[], cipher: ColumnCipher): RevealedRows {
  const revealed = new Map<string, number>()
  let unreadable = 0
  /** The JSON text of the value; null if it cannot be read. */
  const open = (ciphertext: string): string | null => {
    const found = cipher.decrypt(ciphertext)
    if (found === null) unreadable++
    else {
      const column = `${found.database}.${found.field}`
      revealed.set(column, (revealed.get(column) ?? 0) + 1)
    }
    return found?.text ?? null
  }
  const reveal = (value: unknown): unknown => {
    if (typeof value === 'string') {
      if (!CIPHERTEXT_PATTERN.test(value))
        return value.replaceAll(QUOTED_CIPHERTEXT, (quoted, ciphertext: string) => open(ciphertext) ?? quoted)
      const text = open(value)
      return text === null ? value : parseJson(text)
    }
    if (Array.isArray(value)) return value.map(reveal)
    if (!isPlainObject(value) || Object.getPrototypeOf(value) !== Object.prototype) return value
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, reveal(inner) as JsonValue]))
  }
  return { rows: rows.map((row) => row.map(reveal)), revealed, unreadable }
}
