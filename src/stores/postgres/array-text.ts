import type { JsonValue } from '../../contract/index.ts'
import { stringifyJson } from '../../values/json.ts'
import type { ScalarSqlType } from './binary-values.ts'

/** Writes an array as text, such as `{1,NULL,"a b"}`: a binary array cannot hold arrays of different lengths. */
export function formatArrayText(type: ScalarSqlType, items: readonly JsonValue[]): string {
  return `{${items.map((item) => (item === null ? 'NULL' : quoteItem(itemText(type, item)))).join(',')}}`
}

function itemText(type: ScalarSqlType, item: Exclude<JsonValue, null>): string {
  if (type === 'bytea') return `\\x${Buffer.from(item as string, 'base64').toString('hex')}`
  return type === 'jsonb' ? stringifyJson(item) : String(item)
}

function quoteItem(text: string): string {
  return `"${text.replaceAll(/["\\]/g, '\\$&')}"`
}

/** Parses the items of a one-dimensional array, as PostgreSQL writes them. */
export function parseArrayText(text: string): Array<string | null> {
  const items: Array<string | null> = []
  for (let at = 1; at < text.length - 1; at++) {
    if (text[at] === '"') {
      let item = ''
      for (at++; text[at] !== '"'; at++) item += text.charAt(text[at] === '\\' ? ++at : at)
      items.push(item)
      at++
    } else {
      const end = endOfItem(text, at)
      const item = text.slice(at, end)
      items.push(item === 'NULL' ? null : item)
      at = end
    }
  }
  return items
}

function endOfItem(text: string, from: number): number {
  const comma = text.indexOf(',', from)
  return comma === -1 ? text.length - 1 : comma
}
