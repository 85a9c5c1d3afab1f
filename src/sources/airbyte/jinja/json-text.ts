import { printFloat } from './printing.ts'
import { isDict, PyFloat, PyObject, PyTuple, TypeMismatch, type PyValue } from './values.ts'

/** `json.dumps`: separators with a space, and ASCII only. */
export function writeJson(value: PyValue, options: { readonly sorted?: boolean } = {}): string {
  if (value === null || typeof value === 'boolean' || typeof value === 'bigint') return String(value)
  if (typeof value === 'number') return Number.isInteger(value) ? String(value) : printFloat(value)
  if (value instanceof PyFloat) return printFloat(value.value)
  if (typeof value === 'string') return writeText(value)
  if (Array.isArray(value) || value instanceof PyTuple) {
    const items = value instanceof PyTuple ? value.items : value
    return `[${items.map((item) => writeJson(item, options)).join(', ')}]`
  }
  const dict = value instanceof PyObject ? value.items : value
  if (!isDict(dict)) throw new TypeMismatch('a value is not JSON')
  const entries = Object.entries(dict)
  const ordered = options.sorted === true ? entries.toSorted(([a], [b]) => (a < b ? -1 : 1)) : entries
  return `{${ordered.map(([name, member]) => `${writeText(name)}: ${writeJson(member, options)}`).join(', ')}}`
}

function writeText(text: string): string {
  return JSON.stringify(text).replace(
    /[\u007f-\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
