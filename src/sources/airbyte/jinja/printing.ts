import { PyDate, PyDateTime } from './datetime.ts'
import { PyDuration, PyTimeDelta } from './duration.ts'
import { isDict, PyFloat, PyFunction, PyObject, PyTuple, TypeMismatch, Undefined, type PyValue } from './values.ts'

/** `str(value)`. */
export function print(value: PyValue): string {
  if (typeof value === 'string') return value
  if (value instanceof Undefined) return ''
  return represent(value)
}

/** `repr(value)`. */
export function represent(value: PyValue): string {
  if (value === null) return 'None'
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (typeof value === 'string') return quote(value)
  if (typeof value === 'bigint') return String(value)
  if (typeof value === 'number') return Number.isInteger(value) ? String(BigInt(value)) : printFloat(value)
  if (value instanceof PyFloat) return printFloat(value.value)
  if (Array.isArray(value)) return `[${value.map(represent).join(', ')}]`
  if (value instanceof PyTuple)
    return `(${value.items.map(represent).join(', ')}${value.items.length === 1 ? ',' : ''})`
  if (value instanceof PyObject) return represent(value.items)
  if (value instanceof PyFunction) return `<function ${value.name}>`
  if (value instanceof Undefined) return 'Undefined'
  if (
    value instanceof PyDate ||
    value instanceof PyDateTime ||
    value instanceof PyTimeDelta ||
    value instanceof PyDuration
  )
    return value.toString()
  if (!isDict(value)) throw new TypeMismatch('a value cannot be printed')
  return `{${Object.entries(value)
    .map(([name, member]) => `${quote(name)}: ${represent(member)}`)
    .join(', ')}}`
}

/** `repr` of a float: the shortest text, with an exponent below 1e-4 and from 1e16. */
export function printFloat(value: number): string {
  if (Number.isNaN(value)) return 'nan'
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf'
  const size = Math.abs(value)
  if (size !== 0 && (size < 1e-4 || size >= 1e16)) {
    const [digits = '', exponent = ''] = value.toExponential().split('e')
    const amount = exponent.replace(/^[+-]/, '').padStart(2, '0')
    return `${digits}e${exponent.startsWith('-') ? '-' : '+'}${amount}`
  }
  const text = Object.is(value, -0) ? '-0' : String(value)
  return /[.e]/.test(text) ? text : `${text}.0`
}

const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' }

function quote(text: string): string {
  const mark = text.includes("'") && !text.includes('"') ? '"' : "'"
  const escaped = text.replace(/[\\\n\r\t]|[\u0000-\u001f\u007f-\u00a0\u00ad]/g, (character) => {
    const known = ESCAPES[character]
    return known ?? `\\x${(character.codePointAt(0) ?? 0).toString(16).padStart(2, '0')}`
  })
  return `${mark}${escaped.replaceAll(mark, `\\${mark}`)}${mark}`
}
