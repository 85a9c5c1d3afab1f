import type { PyDate, PyDateTime } from './datetime.ts'
import type { PyDuration, PyTimeDelta } from './duration.ts'

/** A value of Python, as a template sees it. Integers are numbers or bigints; whole floats are `PyFloat`. */
export type PyValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | PyFloat
  | PyTuple
  | Undefined
  | PyDate
  | PyDateTime
  | PyTimeDelta
  | PyDuration
  | PyFunction
  | PyObject
  | PyList
  | PyDict

export interface PyList extends Array<PyValue> {}

export interface PyDict {
  [name: string]: PyValue
}

/** A float that JavaScript does not distinguish from an integer: `1.0` prints as `1.0`. */
export class PyFloat {
  readonly value: number

  constructor(value: number) {
    this.value = value
  }
}

export class PyTuple {
  readonly items: readonly PyValue[]

  constructor(items: readonly PyValue[]) {
    this.items = items
  }
}

/** A name or member that does not exist. Prints as an empty string; any other use is an error. */
export class Undefined {
  readonly description: string

  constructor(description: string) {
    this.description = description
  }
}

export interface Keywords {
  readonly [name: string]: PyValue
}

export class PyFunction {
  readonly name: string
  readonly call: (positional: readonly PyValue[], keywords: Keywords) => PyValue

  constructor(name: string, call: (positional: readonly PyValue[], keywords: Keywords) => PyValue) {
    this.name = name
    this.call = call
  }
}

/** A mapping with attributes of its own, such as the slice of a stream, or one that ignores the case of its names. */
export class PyObject {
  readonly items: PyDict
  readonly attributes: PyDict
  readonly ignoresCase: boolean

  constructor(items: PyDict, attributes: PyDict = {}, ignoresCase = false) {
    this.items = items
    this.attributes = attributes
    this.ignoresCase = ignoresCase
  }
}

/** The template is wrong, or its values are. The stream fails. */
export class TemplateError extends Error {
  override readonly name: string = 'TemplateError'
}

/** Python raises UndefinedError. The template then has its default value. */
export class UndefinedUse extends TemplateError {
  override readonly name = 'UndefinedUse'
}

/** Python raises TypeError. The connector framework then takes the template as plain text. */
export class TypeMismatch extends TemplateError {
  override readonly name = 'TypeMismatch'
}

export function isDict(value: PyValue): value is PyDict {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

export function isNumber(value: PyValue): value is number | bigint | boolean | PyFloat {
  return (
    typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean' || value instanceof PyFloat
  )
}

/** Whether Python would hold the number as a float. */
export function isFloat(value: PyValue): boolean {
  return value instanceof PyFloat || (typeof value === 'number' && !Number.isInteger(value))
}

export function toNumber(value: number | bigint | boolean | PyFloat): number {
  return value instanceof PyFloat ? value.value : Number(value)
}

/** Keeps an integer exact. */
export function fromBigInt(value: bigint): number | bigint {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : value
}

export function toFloat(value: number): number | PyFloat {
  return Number.isInteger(value) ? new PyFloat(value) : value
}

/** Own members only: `constructor` is a valid field name. */
export function getMember(dict: PyDict, name: string): PyValue | undefined {
  return Object.hasOwn(dict, name) ? dict[name] : undefined
}

export function setMember(dict: PyDict, name: string, value: PyValue): void {
  if (name === '__proto__')
    Object.defineProperty(dict, name, { value, enumerable: true, configurable: true, writable: true })
  else dict[name] = value
}
