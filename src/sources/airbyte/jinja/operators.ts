import { DAY, floorDivide, PyDate, PyDateTime } from './datetime.ts'
import { addDuration, PyDuration, PyTimeDelta } from './duration.ts'
import { formatPercent } from './percent-format.ts'
import { print } from './printing.ts'
import {
  fromBigInt,
  isDict,
  isFloat,
  isNumber,
  PyFloat,
  PyObject,
  PyTuple,
  TemplateError,
  toFloat,
  toNumber,
  TypeMismatch,
  Undefined,
  UndefinedUse,
  type PyValue,
} from './values.ts'

/** The longest text or list that an operator may make. */
export const LENGTH_MAX = 1_000_000

export function requireDefined(value: PyValue): void {
  if (value instanceof Undefined) throw new UndefinedUse(value.description)
}

export function isTrue(value: PyValue): boolean {
  if (value instanceof Undefined || value === null) return false
  if (isNumber(value)) return toNumber(value) !== 0
  if (typeof value === 'string') return value !== ''
  if (Array.isArray(value)) return value.length > 0
  if (value instanceof PyTuple) return value.items.length > 0
  if (value instanceof PyTimeDelta) return value.micros !== 0n
  if (value instanceof PyObject) return Object.keys(value.items).length > 0
  return isDict(value) ? Object.keys(value).length > 0 : true
}

export function isEqual(left: PyValue, right: PyValue): boolean {
  if (left instanceof Undefined || right instanceof Undefined)
    return left instanceof Undefined && right instanceof Undefined
  if (isNumber(left) && isNumber(right)) return unwrap(left) == unwrap(right)
  if (Array.isArray(left) && Array.isArray(right)) return areEqual(left, right)
  if (left instanceof PyTuple && right instanceof PyTuple) return areEqual(left.items, right.items)
  if (left instanceof PyTimeDelta && right instanceof PyTimeDelta) return left.micros === right.micros
  if (left instanceof PyDate && right instanceof PyDate) return left.days === right.days
  if (left instanceof PyDateTime && right instanceof PyDateTime)
    return (left.offset === null) === (right.offset === null) && left.epoch === right.epoch
  const [first, second] = [toDict(left), toDict(right)]
  if (first !== null && second !== null) {
    const names = Object.keys(first)
    return (
      names.length === Object.keys(second).length &&
      names.every((name) => Object.hasOwn(second, name) && isEqual(first[name] ?? null, second[name] ?? null))
    )
  }
  return left === right
}

function unwrap(value: number | bigint | boolean | PyFloat): number | bigint {
  return typeof value === 'bigint' ? value : toNumber(value)
}

function areEqual(left: readonly PyValue[], right: readonly PyValue[]): boolean {
  return left.length === right.length && left.every((item, index) => isEqual(item, right[index] ?? null))
}

function toDict(value: PyValue): Readonly<Record<string, PyValue>> | null {
  if (value instanceof PyObject) return value.items
  return isDict(value) ? value : null
}

/** Negative, zero or positive. */
export function compare(left: PyValue, right: PyValue): number {
  requireDefined(left)
  requireDefined(right)
  if (isNumber(left) && isNumber(right)) return order(unwrap(left), unwrap(right))
  if (typeof left === 'string' && typeof right === 'string') return compareText(left, right)
  if (left instanceof PyTimeDelta && right instanceof PyTimeDelta) return order(left.micros, right.micros)
  if (left instanceof PyDate && right instanceof PyDate) return order(left.days, right.days)
  if (left instanceof PyDateTime && right instanceof PyDateTime) {
    if ((left.offset === null) === (right.offset === null)) return order(left.epoch, right.epoch)
    throw new TypeMismatch('a time with a zone and one without cannot be compared')
  }
  const [first, second] = [toSequence(left), toSequence(right)]
  if (first !== null && second !== null && Array.isArray(left) === Array.isArray(right)) {
    for (const [index, item] of first.entries()) {
      if (index >= second.length) return 1
      const found = isEqual(item, second[index] ?? null) ? 0 : compare(item, second[index] ?? null)
      if (found !== 0) return found
    }
    return first.length - second.length
  }
  throw new TypeMismatch('values of these types cannot be ordered')
}

function order<Value extends number | bigint>(left: Value, right: Value): number {
  return left < right ? -1 : left > right ? 1 : 0
}

/** Python orders by code points, JavaScript by UTF-16 units. */
function compareText(left: string, right: string): number {
  if (left === right) return 0
  const [first, second] = [Array.from(left), Array.from(right)]
  for (const [index, character] of first.entries()) {
    const other = second[index]
    if (other === undefined) return 1
    if (character !== other) return (character.codePointAt(0) ?? 0) - (other.codePointAt(0) ?? 0)
  }
  return -1
}

export function toSequence(value: PyValue): readonly PyValue[] | null {
  if (Array.isArray(value)) return value
  return value instanceof PyTuple ? value.items : null
}

/** The items of a loop. An undefined value has none. */
export function iterate(value: PyValue): readonly PyValue[] {
  if (value instanceof Undefined) return []
  if (typeof value === 'string') return Array.from(value)
  const items = toSequence(value)
  if (items !== null) return items
  const dict = toDict(value)
  if (dict !== null) return Object.keys(dict)
  throw new TypeMismatch('a value is not iterable')
}

export function contains(container: PyValue, item: PyValue): boolean {
  if (container instanceof Undefined) return false
  if (typeof container === 'string') {
    if (typeof item === 'string') return container.includes(item)
    throw new TypeMismatch('only a text is in a text')
  }
  if (container instanceof PyObject && container.ignoresCase) {
    const wanted = typeof item === 'string' ? item.toLowerCase() : null
    return Object.keys(container.items).some((name) => name.toLowerCase() === wanted)
  }
  const dict = toDict(container)
  if (dict !== null) return typeof item === 'string' && Object.hasOwn(dict, item)
  return iterate(container).some((member) => isEqual(member, item))
}

export function calculate(operator: string, left: PyValue, right: PyValue): PyValue {
  if (operator === '~') return limit(print(left) + print(right))
  requireDefined(left)
  requireDefined(right)
  const found = calculateTime(operator, left, right) ?? calculateSequence(operator, left, right)
  if (found !== undefined) return found
  if (!isNumber(left) || !isNumber(right)) throw new TypeMismatch(`\`${operator}\` does not take these types`)
  return calculateNumber(operator, left, right)
}

type Numeric = number | bigint | boolean | PyFloat

function calculateNumber(operator: string, left: Numeric, right: Numeric): PyValue {
  const [a, b] = [toNumber(left), toNumber(right)]
  if (operator === '/') {
    if (b === 0) throw new TemplateError('a division by zero')
    return toFloat(a / b)
  }
  if (isFloat(left) || isFloat(right)) return toFloat(calculateFloat(operator, a, b))
  const [x, y] = [toBigInt(left), toBigInt(right)]
  switch (operator) {
    case '+':
      return fromBigInt(x + y)
    case '-':
      return fromBigInt(x - y)
    case '*':
      limitDigits(digitsOf(x) + digitsOf(y))
      return fromBigInt(x * y)
    case '//':
    case '%': {
      if (y === 0n) throw new TemplateError('a division by zero')
      const remainder = ((x % y) + y) % y
      return fromBigInt(operator === '%' ? remainder : (x - remainder) / y)
    }
    case '**':
      if (b < 0) return toFloat(a ** b)
      limitDigits(digitsOf(x) * b)
      return fromBigInt(x ** y)
    default:
      throw new TemplateError(`the operator \`${operator}\` is not supported`)
  }
}

function digitsOf(value: bigint): number {
  return value.toString(16).length
}

function limitDigits(digits: number): void {
  if (digits > 4_096) throw new TemplateError('a number is too large')
}

function toBigInt(value: Numeric): bigint {
  return typeof value === 'bigint' ? value : BigInt(toNumber(value))
}

function calculateFloat(operator: string, a: number, b: number): number {
  if (b === 0 && (operator === '//' || operator === '%')) throw new TemplateError('a division by zero')
  switch (operator) {
    case '+':
      return a + b
    case '-':
      return a - b
    case '*':
      return a * b
    case '//':
      return Math.floor(a / b)
    case '%':
      return a - b * Math.floor(a / b)
    case '**':
      return a ** b
    default:
      throw new TemplateError(`the operator \`${operator}\` is not supported`)
  }
}

function calculateSequence(operator: string, left: PyValue, right: PyValue): PyValue | undefined {
  if (operator === '+') {
    if (typeof left === 'string' && typeof right === 'string') return limit(left + right)
    if (Array.isArray(left) && Array.isArray(right)) return limitList([...left, ...right])
    if (left instanceof PyTuple && right instanceof PyTuple) return new PyTuple([...left.items, ...right.items])
  }
  if (operator === '%' && typeof left === 'string') return limit(formatPercent(left, right))
  if (operator !== '*') return undefined
  const [sequence, count] = typeof left === 'string' || Array.isArray(left) ? [left, right] : [right, left]
  if (typeof count !== 'number' && typeof count !== 'boolean') return undefined
  const times = Math.max(0, Number(count))
  if (typeof sequence === 'string') {
    if (sequence.length * times > LENGTH_MAX) throw new TemplateError('a text is too long')
    return sequence.repeat(times)
  }
  if (!Array.isArray(sequence)) return undefined
  if (sequence.length * times > LENGTH_MAX) throw new TemplateError('a list is too long')
  return Array.from({ length: times }, () => sequence).flat(1)
}

function calculateTime(operator: string, left: PyValue, right: PyValue): PyValue | undefined {
  const isSum = operator === '+'
  if (isSum && isDuration(left) && isTime(right)) return addDuration(right, left)
  // Python subtracts whole days, rounded down, from a date.
  if (operator === '-' && left instanceof PyDate && right instanceof PyTimeDelta)
    return new PyDate(left.days - Number(floorDivide(right.micros, DAY)))
  if (isTime(left) && isDuration(right) && (isSum || operator === '-'))
    return addDuration(left, isSum ? right : negate(right))
  if (operator === '-' && left instanceof PyDateTime && right instanceof PyDateTime) {
    if ((left.offset === null) !== (right.offset === null))
      throw new TypeMismatch('a time with a zone and one without cannot be subtracted')
    return new PyTimeDelta(left.epoch - right.epoch)
  }
  if (operator === '-' && left instanceof PyDate && right instanceof PyDate)
    return new PyTimeDelta(BigInt(left.days - right.days) * DAY)
  if (isDuration(left) && isDuration(right) && (isSum || operator === '-'))
    return addDurations(left, isSum ? right : negate(right))
  if (operator === '*' && left instanceof PyTimeDelta && typeof right === 'number') return multiply(left, right)
  if (operator === '*' && right instanceof PyTimeDelta && typeof left === 'number') return multiply(right, left)
  if (left instanceof PyTimeDelta && right instanceof PyTimeDelta && operator === '/' && right.micros !== 0n)
    return toFloat(Number(left.micros) / Number(right.micros))
  return undefined
}

function isTime(value: PyValue): value is PyDate | PyDateTime {
  return value instanceof PyDate || value instanceof PyDateTime
}

function isDuration(value: PyValue): value is PyTimeDelta | PyDuration {
  return value instanceof PyTimeDelta || value instanceof PyDuration
}

export function negate(value: PyTimeDelta | PyDuration): PyTimeDelta | PyDuration {
  return value instanceof PyDuration ? value.negate() : new PyTimeDelta(-value.micros)
}

function addDurations(left: PyTimeDelta | PyDuration, right: PyTimeDelta | PyDuration): PyTimeDelta | PyDuration {
  const [years, months] = [sumOf(left, right, 'years'), sumOf(left, right, 'months')]
  const rest = new PyTimeDelta(restOf(left) + restOf(right))
  return years === 0 && months === 0 ? rest : new PyDuration(years, months, rest)
}

function sumOf(left: PyTimeDelta | PyDuration, right: PyTimeDelta | PyDuration, unit: 'years' | 'months'): number {
  return [left, right].reduce((sum, part) => sum + (part instanceof PyDuration ? part[unit] : 0), 0)
}

function restOf(value: PyTimeDelta | PyDuration): bigint {
  return value instanceof PyDuration ? value.rest.micros : value.micros
}

function multiply({ micros }: PyTimeDelta, factor: number): PyTimeDelta {
  return new PyTimeDelta(
    Number.isInteger(factor) ? micros * BigInt(factor) : BigInt(Math.round(Number(micros) * factor)),
  )
}

export function limit(text: string): string {
  if (text.length > LENGTH_MAX) throw new TemplateError('a text is too long')
  return text
}

function limitList(items: PyValue[]): PyValue[] {
  if (items.length > LENGTH_MAX) throw new TemplateError('a list is too long')
  return items
}
