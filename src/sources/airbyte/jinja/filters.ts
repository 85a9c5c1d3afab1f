import { createHash, createHmac, getHashes } from 'node:crypto'
import { writeJson } from './json-text.ts'
import { capitalize, getItem, toTitle } from './members.ts'
import { compare, isEqual, isTrue, iterate, limit, requireDefined, calculate } from './operators.ts'
import { formatPercent } from './percent-format.ts'
import { print } from './printing.ts'
import { checkSubject, compilePattern } from './regex.ts'
import { runTest } from './tests.ts'
import {
  fromBigInt,
  isDict,
  isNumber,
  PyObject,
  PyTuple,
  TemplateError,
  toFloat,
  toNumber,
  TypeMismatch,
  Undefined,
  UndefinedUse,
  type Keywords,
  type PyValue,
} from './values.ts'

export type Filter = (value: PyValue, positional: readonly PyValue[], keywords: Keywords) => PyValue

/** The filters of Jinja and of Airbyte's framework. */
export const FILTERS: Readonly<Record<string, Filter>> = {
  // Jinja
  default: applyDefault,
  d: applyDefault,
  int: (value, [fallback = 0, base = 10], keywords) => toInteger(value, keywords.default ?? fallback, Number(base)),
  float: (value, [fallback = toFloat(0)], keywords) => toFloatValue(value, keywords.default ?? fallback),
  length: (value) => countItems(value),
  count: (value) => countItems(value),
  first: (value) => pick(iterate(value), 0, 'No first item, sequence was empty.'),
  last: (value) => pick(iterate(value), -1, 'No last item, sequence was empty.'),
  list: (value) => [...iterate(value)],
  join: (value, [separator = '', attribute], keywords) => {
    const name = attribute ?? keywords.attribute
    const items = name === undefined ? iterate(value) : iterate(value).map((item) => getPath(item, name))
    return limit(items.map(print).join(print(keywords.d ?? separator)))
  },
  lower: (value) => print(value).toLowerCase(),
  upper: (value) => print(value).toUpperCase(),
  title: (value) => toTitle(print(value)),
  capitalize: (value) => capitalize(print(value)),
  trim: (value, [characters]) => trim(print(value), characters === undefined ? null : print(characters)),
  replace: (value, [before = '', after = '', count]) => {
    const parts = print(value).split(print(before))
    if (count === undefined || count === null) return limit(parts.join(print(after)))
    const times = Number(count)
    return limit([...parts.slice(0, times), parts.slice(times).join(print(before))].join(print(after)))
  },
  tojson: (value) =>
    writeJson(value, { sorted: true }).replace(/[<>&']/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`),
  urlencode: (value) => urlEncode(value),
  abs: (value) => (isNumber(value) && toNumber(value) < 0 ? calculate('*', value, -1) : value),
  round: (value, [precision = 0, method = 'common'], keywords) =>
    roundNumber(value, Number(keywords.precision ?? precision), print(keywords.method ?? method)),
  sum: (value, [attribute], keywords) => {
    const name = attribute ?? keywords.attribute
    const items = name === undefined ? iterate(value) : iterate(value).map((item) => getPath(item, name))
    return items.reduce((sum, item) => calculate('+', sum, item), keywords.start ?? 0)
  },
  min: (value) => pickExtreme(iterate(value), -1),
  max: (value) => pickExtreme(iterate(value), 1),
  sort: (value, [reverse = false], keywords) => {
    const name = keywords.attribute
    const keyOf = (item: PyValue): PyValue => foldCase(name === undefined ? item : getPath(item, name))
    const sorted = [...iterate(value)].toSorted((a, b) => compare(keyOf(a), keyOf(b)))
    return isTrue(keywords.reverse ?? reverse) ? sorted.toReversed() : sorted
  },
  unique: (value) => {
    const items = iterate(value)
    return items.filter((item, index) => items.findIndex((other) => isEqual(foldCase(other), foldCase(item))) === index)
  },
  reverse: (value) =>
    typeof value === 'string' ? Array.from(value).toReversed().join('') : [...iterate(value)].toReversed(),
  map: (value, [name, ...others], keywords) => {
    const items = iterateLazily(value)
    const attribute = keywords.attribute
    if (attribute !== undefined)
      return items.map((item) => {
        const found = getPath(item, attribute)
        return found instanceof Undefined ? (keywords.default ?? found) : found
      })
    return items.map((item) => applyFilter(print(name ?? ''), item, others, keywords))
  },
  select: (value, [test, ...others]) => iterateLazily(value).filter((item) => passes(item, test, others)),
  reject: (value, [test, ...others]) => iterateLazily(value).filter((item) => !passes(item, test, others)),
  selectattr: (value, [name = '', test, ...others]) =>
    iterateLazily(value).filter((item) => passes(getPath(item, name), test, others)),
  rejectattr: (value, [name = '', test, ...others]) =>
    iterateLazily(value).filter((item) => !passes(getPath(item, name), test, others)),
  items: (value) =>
    value instanceof Undefined ? [] : Object.entries(requireDict(value)).map((entry) => new PyTuple(entry)),
  dictsort: (value) =>
    Object.entries(requireDict(value))
      .toSorted(([a], [b]) => compare(a.toLowerCase(), b.toLowerCase()))
      .map((entry) => new PyTuple(entry)),
  attr: (value, [name = '']) => getItem(value, print(name)),
  format: (value, positional, keywords) =>
    limit(formatPercent(print(value), Object.keys(keywords).length > 0 ? { ...keywords } : new PyTuple(positional))),
  wordcount: (value) => (print(value).match(/[\p{L}\p{N}_]+/gu) ?? []).length,
  escape: (value) => escapeHtml(print(value)),
  e: (value) => escapeHtml(print(value)),
  safe: (value) => value,
  // Airbyte
  string: (value) => (typeof value === 'string' ? value : `"""${writeJson(value)}"""`),
  hash: (value, [kind = 'md5', salt = null]) => hashText(print(value), print(kind), salt),
  hmac: (value, [key = '', kind = 'sha256']) => {
    if (kind !== 'sha256') throw new TemplateError(`the hash ${JSON.stringify(print(kind))} is not allowed for hmac`)
    return createHmac('sha256', print(key)).update(print(value)).digest('hex')
  },
  base64encode: (value) => Buffer.from(requireOwnText(value)).toString('base64'),
  base64decode: (value) => Buffer.from(requireOwnText(value), 'base64').toString(),
  base64binascii_decode: (value) => Buffer.from(requireOwnText(value)).toString('base64'),
  regex_search: (value, [pattern = '']) =>
    compilePattern(requireText(pattern)).exec(checkSubject(requireText(value)))?.[1] ?? '',
  regex_replace: (value, [pattern = '', replacement = '']) =>
    limit(
      checkSubject(requireText(value)).replace(
        new RegExp(compilePattern(requireText(pattern)), 'g'),
        requireText(replacement)
          .replaceAll('$', '$$$$')
          .replace(/\\(\d)/g, '$$$1')
          .replace(/\\g<(\d+)>/g, '$$$1'),
      ),
    ),
}

export function hasFilter(name: string): boolean {
  return Object.hasOwn(FILTERS, name)
}

export function applyFilter(name: string, value: PyValue, positional: readonly PyValue[], keywords: Keywords): PyValue {
  const filter = Object.hasOwn(FILTERS, name) ? FILTERS[name] : undefined
  if (filter === undefined) throw new TemplateError(`there is no filter \`${name}\``)
  return filter(value, positional, keywords)
}

function applyDefault(value: PyValue, positional: readonly PyValue[], keywords: Keywords): PyValue {
  const [fallback = '', includesFalse = false] = positional
  const replaces = value instanceof Undefined || (isTrue(keywords.boolean ?? includesFalse) && !isTrue(value))
  return replaces ? (keywords.default_value ?? fallback) : value
}

function pick(items: readonly PyValue[], index: number, description: string): PyValue {
  const item = items.at(index)
  return item === undefined ? new Undefined(description) : item
}

function passes(value: PyValue, test: PyValue | undefined, others: readonly PyValue[]): boolean {
  return test === undefined ? isTrue(value) : runTest(print(test), value, others)
}

/** An attribute of Jinja's filters: names and indexes joined by dots. */
function getPath(value: PyValue, path: PyValue): PyValue {
  if (typeof path === 'number') return getItem(value, path)
  return print(path)
    .split('.')
    .reduce<PyValue>((owner, name) => getItem(owner, /^\d+$/.test(name) ? Number(name) : name), value)
}

/** The lazy filters of Jinja take whatever is false as empty. */
function iterateLazily(value: PyValue): readonly PyValue[] {
  return isTrue(value) ? iterate(value) : []
}

function foldCase(value: PyValue): PyValue {
  return typeof value === 'string' ? value.toLowerCase() : value
}

function countItems(value: PyValue): number {
  if (value instanceof Undefined) return 0
  return iterate(value).length
}

function toInteger(value: PyValue, fallback: PyValue, base: number): PyValue {
  requireDefined(value)
  if (isNumber(value)) {
    if (typeof value === 'bigint') return value
    const number = Math.trunc(toNumber(value))
    return Number.isFinite(number) ? fromBigInt(BigInt(number)) : fallback
  }
  if (typeof value !== 'string') return fallback
  const plain = value.trim().replace(/(?<=\d)_(?=\d)/g, '')
  if (base === 10 && /^[-+]?\d+$/.test(plain)) return fromBigInt(BigInt(plain.replace(/^\+/, '')))
  const parsed = base === 10 ? parseFloatText(plain) : Number.parseInt(plain, base)
  return parsed !== null && Number.isFinite(parsed) ? fromBigInt(BigInt(Math.trunc(parsed))) : fallback
}

function toFloatValue(value: PyValue, fallback: PyValue): PyValue {
  requireDefined(value)
  const parsed = isNumber(value) ? toNumber(value) : typeof value === 'string' ? parseFloatText(value) : null
  return parsed === null ? fallback : toFloat(parsed)
}

function parseFloatText(text: string): number | null {
  const plain = text.trim().replace(/(?<=\d)_(?=\d)/g, '')
  if (/^[-+]?(?:inf|infinity)$/i.test(plain)) return plain.startsWith('-') ? -Infinity : Infinity
  return /^[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?$/i.test(plain) ? Number(plain) : null
}

/** Python rounds halves to even. */
function roundNumber(value: PyValue, precision: number, method: string): PyValue {
  requireDefined(value)
  if (!isNumber(value)) throw new TypeMismatch('a number is required')
  const factor = 10 ** precision
  const scaled = toNumber(value) * factor
  const whole = method === 'ceil' ? Math.ceil(scaled) : method === 'floor' ? Math.floor(scaled) : roundHalfEven(scaled)
  return toFloat(whole / factor)
}

function roundHalfEven(value: number): number {
  const floor = Math.floor(value)
  if (value - floor !== 0.5) return Math.round(value)
  return floor % 2 === 0 ? floor : floor + 1
}

export function pickExtreme(items: readonly PyValue[], sign: 1 | -1): PyValue {
  const [first, ...others] = items
  if (first === undefined) return new Undefined('No aggregated item, sequence was empty.')
  return others.reduce((best, item) => (compare(item, best) * sign > 0 ? item : best), first)
}

function urlEncode(value: PyValue): string {
  if (typeof value === 'string' || !(Array.isArray(value) || isDict(value)))
    return quoteUrl(print(value)).replaceAll('%2F', '/')
  const pairs = Array.isArray(value) ? value.map((pair) => iterate(pair)) : Object.entries(value)
  return pairs
    .map((pair) => pair.map((part) => quoteUrl(print(part ?? null)).replaceAll('%20', '+')).join('='))
    .join('&')
}

/** `urllib.parse.quote`. */
export function quoteUrl(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}

function hashText(text: string, kind: string, salt: PyValue): string {
  const algorithm = kind.replaceAll('_', '-').replace(/^sha3-/, 'sha3-')
  if (!getHashes().includes(algorithm.toLowerCase()))
    throw new TemplateError(`there is no hash ${JSON.stringify(kind)}`)
  const hash = createHash(algorithm).update(text)
  if (isTrue(salt)) hash.update(print(salt))
  return hash.digest('hex')
}

function trim(text: string, characters: string | null): string {
  if (characters === null) return text.trim()
  let [start, end] = [0, text.length]
  while (start < end && characters.includes(text[start] ?? '')) start++
  while (end > start && characters.includes(text[end - 1] ?? '')) end--
  return text.slice(start, end)
}

const HTML: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', "'": '&#39;', '"': '&#34;' }

function escapeHtml(text: string): string {
  return text.replace(/[&<>'"]/g, (character) => HTML[character] ?? character)
}

function requireText(value: PyValue): string {
  if (typeof value !== 'string') throw new TypeMismatch('a text is required')
  return value
}

/** For a method of the value itself, which an undefined value refuses as undefined. */
function requireOwnText(value: PyValue): string {
  if (value instanceof Undefined) throw new UndefinedUse(value.description)
  return requireText(value)
}

function requireDict(value: PyValue): Readonly<Record<string, PyValue>> {
  if (value instanceof PyObject) return value.items
  if (!isDict(value)) throw new TypeMismatch('a dictionary is required')
  return value
}
