import { print, represent } from './printing.ts'
import { isDict, isNumber, PyTuple, toNumber, TypeMismatch, type PyValue } from './values.ts'

/** `text % values`: `%s`, `%d`, `%i`, `%r`, `%f`, `%x` with width and precision. */
export function formatPercent(text: string, values: PyValue): string {
  const items = values instanceof PyTuple ? [...values.items] : [values]
  const named = isDict(values) ? values : null
  let used = 0
  const formatted = text.replace(
    /%(?:\((\w+)\))?([-0]?)(\d*)(?:\.(\d+))?([sdirfxX%])/g,
    (_, name: string | undefined, flag: string, width: string, precision: string | undefined, kind: string) => {
      if (kind === '%') return '%'
      const value = name === undefined ? items[used++] : named?.[name]
      if (value === undefined) throw new TypeMismatch('a text has more places than values')
      const shown = formatValue(value, kind, precision)
      const size = Math.min(Number(width || 0), 1_000)
      if (flag === '-') return shown.padEnd(size)
      return shown.padStart(size, flag === '0' && kind !== 's' && kind !== 'r' ? '0' : ' ')
    },
  )
  if (named === null && used < items.length) throw new TypeMismatch('a text has fewer places than values')
  return formatted
}

function formatValue(value: PyValue, kind: string, precision: string | undefined): string {
  if (kind === 's') return precision === undefined ? print(value) : print(value).slice(0, Number(precision))
  if (kind === 'r') return represent(value)
  if (!isNumber(value)) throw new TypeMismatch('a number is required')
  if (kind === 'f') return toNumber(value).toFixed(Math.min(Number(precision ?? 6), 100))
  if (typeof value === 'bigint') return value.toString(kind.toLowerCase() === 'x' ? 16 : 10)
  const whole = Math.trunc(toNumber(value))
  return kind === 'x' ? whole.toString(16) : kind === 'X' ? whole.toString(16).toUpperCase() : String(whole)
}
