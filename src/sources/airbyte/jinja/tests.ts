import { compare, contains, isEqual, isTrue, iterate } from './operators.ts'
import {
  isDict,
  isFloat,
  isNumber,
  PyFunction,
  PyObject,
  PyTuple,
  TemplateError,
  toNumber,
  Undefined,
  type PyValue,
} from './values.ts'

type Test = (value: PyValue, other: PyValue) => boolean

const TESTS: Readonly<Record<string, Test>> = {
  none: (value) => value === null,
  defined: (value) => !(value instanceof Undefined),
  undefined: (value) => value instanceof Undefined,
  true: (value) => value === true,
  false: (value) => value === false,
  boolean: (value) => typeof value === 'boolean',
  string: (value) => typeof value === 'string',
  number: (value) => isNumber(value),
  integer: (value) => isNumber(value) && typeof value !== 'boolean' && !isFloat(value),
  float: (value) => isFloat(value),
  mapping: (value) => isDict(value) || value instanceof PyObject,
  sequence: (value) => typeof value === 'string' || isCollection(value) || value instanceof Undefined,
  iterable: (value) => typeof value === 'string' || isCollection(value) || value instanceof Undefined,
  callable: (value) => value instanceof PyFunction,
  lower: (value) => typeof value === 'string' && value === value.toLowerCase(),
  upper: (value) => typeof value === 'string' && value === value.toUpperCase(),
  odd: (value) => isNumber(value) && Math.abs(toNumber(value) % 2) === 1,
  even: (value) => isNumber(value) && toNumber(value) % 2 === 0,
  eq: isEqual,
  equalto: isEqual,
  sameas: isEqual,
  ne: (value, other) => !isEqual(value, other),
  lt: (value, other) => compare(value, other) < 0,
  lessthan: (value, other) => compare(value, other) < 0,
  le: (value, other) => compare(value, other) <= 0,
  gt: (value, other) => compare(value, other) > 0,
  greaterthan: (value, other) => compare(value, other) > 0,
  ge: (value, other) => compare(value, other) >= 0,
  in: (value, other) => contains(other, value),
}

const SYMBOLS: Readonly<Record<string, string>> = {
  '==': 'eq',
  '!=': 'ne',
  '<': 'lt',
  '<=': 'le',
  '>': 'gt',
  '>=': 'ge',
  None: 'none',
  True: 'true',
  False: 'false',
}

export function hasTest(name: string): boolean {
  return Object.hasOwn(TESTS, SYMBOLS[name] ?? name)
}

export function runTest(name: string, value: PyValue, others: readonly PyValue[]): boolean {
  const known = SYMBOLS[name] ?? name
  const test = Object.hasOwn(TESTS, known) ? TESTS[known] : undefined
  if (test === undefined) throw new TemplateError(`there is no test \`${name}\``)
  return isTrue(test(value, others[0] ?? null))
}

function isCollection(value: PyValue): boolean {
  if (Array.isArray(value) || value instanceof PyTuple || value instanceof PyObject) return true
  return isDict(value) && iterate(value).length >= 0
}
