import { createDateTime, PyDate, PyDateTime } from './datetime.ts'
import { PyDuration, PyTimeDelta, totalSeconds } from './duration.ts'
import { isEqual, iterate, LENGTH_MAX, limit, requireDefined } from './operators.ts'
import { print } from './printing.ts'
import { formatTemplate } from './str-format.ts'
import { isoWeek, strftime } from './time-formats.ts'
import {
  getMember,
  isDict,
  PyFunction,
  PyObject,
  PyTuple,
  setMember,
  TemplateError,
  toFloat,
  TypeMismatch,
  Undefined,
  type Keywords,
  type PyDict,
  type PyList,
  type PyValue,
} from './values.ts'

/** `value.name`: an attribute, or else the item of that name. */
export function getAttribute(value: PyValue, name: string): PyValue {
  requireDefined(value)
  const attribute = findAttribute(value, name)
  return attribute === undefined ? orUndefined(findItem(value, name), value, name) : attribute
}

/** `value[name]`: an item, or else the attribute of that name. */
export function getItem(value: PyValue, name: PyValue): PyValue {
  requireDefined(value)
  const item = findItem(value, name)
  if (item !== undefined) return item
  return orUndefined(typeof name === 'string' ? findAttribute(value, name) : undefined, value, print(name))
}

/** For `str.format`, which reads members by their names in a text. */
function readMember(owner: PyValue, name: string, kind: 'attribute' | 'item'): PyValue {
  return kind === 'attribute' ? getAttribute(owner, name) : getItem(owner, /^\d+$/.test(name) ? Number(name) : name)
}

function orUndefined(found: PyValue | undefined, value: PyValue, name: string): PyValue {
  return found === undefined ? missing(value, name) : found
}

/** `null` is a value: only an absent member has the fallback. */
function orElse(found: PyValue | undefined, fallback: PyValue): PyValue {
  return found === undefined ? fallback : found
}

function missing(value: PyValue, name: string): Undefined {
  const owner = value === null ? 'None' : isDict(value) || value instanceof PyObject ? 'dict object' : 'object'
  return new Undefined(`'${owner}' has no attribute '${name.slice(0, 100)}'`)
}

function findItem(value: PyValue, name: PyValue): PyValue | undefined {
  if (typeof name === 'number' || typeof name === 'boolean') {
    const items = typeof value === 'string' ? Array.from(value) : toList(value)
    return items?.at(Number(name))
  }
  if (typeof name !== 'string') return undefined
  if (value instanceof PyObject) return findInObject(value, name)
  return isDict(value) ? getMember(value, name) : undefined
}

function findInObject({ items, ignoresCase }: PyObject, name: string): PyValue | undefined {
  const exact = getMember(items, name)
  if (exact !== undefined || !ignoresCase) return exact
  const found = Object.keys(items).find((key) => key.toLowerCase() === name.toLowerCase())
  return found === undefined ? undefined : getMember(items, found)
}

function toList(value: PyValue): readonly PyValue[] | null {
  if (value instanceof PyTuple) return value.items
  return Array.isArray(value) ? value : null
}

function findAttribute(value: PyValue, name: string): PyValue | undefined {
  if (value instanceof PyObject) {
    const own = getMember(value.attributes, name)
    if (own !== undefined) return own
    return bindLookup(value, name) ?? bind(value.items, name, DICT_METHODS)
  }
  if (typeof value === 'string') return bind(value, name, TEXT_METHODS)
  if (Array.isArray(value)) return bind(value, name, LIST_METHODS)
  if (value instanceof PyTuple) return bind(value.items, name, SEQUENCE_METHODS)
  if (value instanceof PyDateTime) return getTimeField(value, name) ?? bind(value, name, TIME_METHODS)
  if (value instanceof PyDate) return getDateField(value, name) ?? bind(value, name, DATE_METHODS)
  if (value instanceof PyTimeDelta) return getDeltaField(value, name)
  if (value instanceof PyDuration) return name === 'years' ? value.years : name === 'months' ? value.months : undefined
  return isDict(value) ? bind(value, name, DICT_METHODS) : undefined
}

/** Headers are found whatever their case, also by `get`. */
function bindLookup(value: PyObject, name: string): PyValue | undefined {
  if (name !== 'get' || !value.ignoresCase) return undefined
  return new PyFunction('get', ([key = null, fallback = null]) => orElse(findItem(value, key), fallback))
}

type Method<Owner> = (owner: Owner, positional: readonly PyValue[], keywords: Keywords) => PyValue

function bind<Owner>(
  owner: Owner,
  name: string,
  methods: Readonly<Record<string, Method<Owner>>>,
): PyFunction | undefined {
  const method = Object.hasOwn(methods, name) ? methods[name] : undefined
  return method && new PyFunction(name, (positional, keywords) => method(owner, positional, keywords))
}

const DICT_METHODS: Readonly<Record<string, Method<PyDict>>> = {
  get: (dict, [name = null, fallback = null]) => {
    if (name instanceof Undefined) return fallback
    return orElse(getMember(dict, print(name)), fallback)
  },
  items: (dict) => Object.entries(dict).map((entry) => new PyTuple(entry)),
  keys: (dict) => Object.keys(dict),
  values: (dict) => Object.values(dict),
  copy: (dict) => ({ ...dict }),
  pop: (dict, [name = null, fallback]) => {
    const key = print(name)
    const member = getMember(dict, key)
    const value = member === undefined ? fallback : member
    if (value === undefined) throw new TemplateError('a dictionary has no such key')
    delete dict[key]
    return value
  },
  update: (dict, [other = {}], keywords) => {
    for (const source of [other, keywords])
      if (isDict(source)) for (const [name, value] of Object.entries(source)) setMember(dict, name, value)
    return null
  },
  setdefault: (dict, [name = null, value = null]) => {
    const known = getMember(dict, print(name))
    if (known === undefined) setMember(dict, print(name), value)
    return orElse(known, value)
  },
}

const SEQUENCE_METHODS: Readonly<Record<string, Method<readonly PyValue[]>>> = {
  index: (items, [wanted = null]) => {
    const index = items.findIndex((item) => isEqual(item, wanted))
    if (index === -1) throw new TemplateError('a value is not in the list')
    return index
  },
  count: (items, [wanted = null]) => items.filter((item) => isEqual(item, wanted)).length,
}

const LIST_METHODS: Readonly<Record<string, Method<PyList>>> = {
  ...SEQUENCE_METHODS,
  append: (list, [item = null]) => {
    if (list.length >= LENGTH_MAX) throw new TemplateError('a list is too long')
    list.push(item)
    return null
  },
  extend: (list, [items = null]) => {
    const added = iterate(items)
    if (list.length + added.length > LENGTH_MAX) throw new TemplateError('a list is too long')
    list.push(...added)
    return null
  },
  insert: (list, [index = 0, item = null]) => {
    list.splice(Number(index), 0, item)
    return null
  },
  pop: (list, [index = -1]) => {
    const at = Number(index)
    if (list.at(at) === undefined) throw new TemplateError('a list has no such item')
    return list.splice(at < 0 ? list.length + at : at, 1)[0] ?? null
  },
  reverse: (list) => {
    list.reverse()
    return null
  },
  copy: (list) => [...list],
}

function text(value: PyValue | undefined): string {
  // Also for an undefined value: methods of Python refuse it by its type.
  if (typeof value !== 'string') throw new TypeMismatch('a text is required')
  return value
}

/** `\s` of Python, which includes the separators of files and records. */
const BLANK = '[\\s\\u001c-\\u001f\\u0085]'

function strip(value: string, characters: PyValue | undefined, ends: 'both' | 'left' | 'right'): string {
  if (characters === undefined || characters === null) {
    const left = ends === 'right' ? value : value.replace(new RegExp(`^${BLANK}+`), '')
    return ends === 'left' ? left : trimBlankEnd(left)
  }
  const set = new Set(Array.from(text(characters)))
  const items = Array.from(value)
  let [start, end] = [0, items.length]
  if (ends !== 'right') while (start < end && set.has(items[start] ?? '')) start++
  if (ends !== 'left') while (end > start && set.has(items[end - 1] ?? '')) end--
  return items.slice(start, end).join('')
}

/** Backtracking over long runs of blanks would take quadratic time. */
function trimBlankEnd(value: string): string {
  const blank = new RegExp(BLANK)
  let end = value.length
  while (end > 0 && blank.test(value[end - 1] ?? '')) end--
  return value.slice(0, end)
}

function split(value: string, separator: PyValue | undefined, max: number): string[] {
  if (separator === undefined || separator === null) {
    const words = strip(value, null, 'both')
      .split(new RegExp(`${BLANK}+`))
      .filter((word) => word !== '')
    return max < 0 || words.length <= max + 1 ? words : value.trimStart().split(/\s+/, max).concat(rest(value, max))
  }
  const mark = text(separator)
  if (mark === '') throw new TemplateError('an empty separator')
  const parts = value.split(mark)
  return max < 0 || parts.length <= max + 1 ? parts : [...parts.slice(0, max), parts.slice(max).join(mark)]
}

function rest(value: string, words: number): string[] {
  let left = value.trimStart()
  for (let count = 0; count < words; count++) left = left.replace(/^\S+\s+/, '')
  return [left]
}

function rsplit(value: string, separator: PyValue | undefined, max: number): string[] {
  const parts = split(value, separator, -1)
  if (max < 0 || parts.length <= max + 1) return parts
  const kept = parts.length - max
  return [parts.slice(0, kept).join(typeof separator === 'string' ? separator : ' '), ...parts.slice(kept)]
}

function anyOf(marks: PyValue | undefined, matches: (mark: string) => boolean): boolean {
  return marks instanceof PyTuple ? marks.items.some((mark) => matches(text(mark))) : matches(text(marks))
}

function replaceText(value: string, before: string, after: string, max: number): string {
  if (max < 0) {
    if (before === '') return limit(Array.from(value).reduce((joined, c) => joined + c + after, after))
    const growth = value.split(before).length * Math.max(0, after.length - before.length)
    if (value.length + growth > LENGTH_MAX) throw new TemplateError('a text is too long')
    return value.replaceAll(before, () => after)
  }
  const parts = value.split(before)
  return parts.slice(0, max + 1).join(after) + parts.slice(max + 1).reduce((joined, part) => joined + before + part, '')
}

const TEXT_METHODS: Readonly<Record<string, Method<string>>> = {
  split: (value, [separator, max = -1], keywords) =>
    split(value, separator ?? keywords.sep, Number(keywords.maxsplit ?? max)),
  rsplit: (value, [separator, max = -1], keywords) =>
    rsplit(value, separator ?? keywords.sep, Number(keywords.maxsplit ?? max)),
  splitlines: (value) =>
    value.split(/\r\n|\r|\n/).filter((line, index, lines) => line !== '' || index < lines.length - 1),
  partition: (value, [mark]) => {
    const at = value.indexOf(text(mark))
    return new PyTuple(at < 0 ? [value, '', ''] : [value.slice(0, at), text(mark), value.slice(at + text(mark).length)])
  },
  join: (value, [items = null]) => limit(iterate(items).map(text).join(value)),
  replace: (value, [before, after, max = -1]) => replaceText(value, text(before), text(after), Number(max)),
  strip: (value, [characters]) => strip(value, characters, 'both'),
  lstrip: (value, [characters]) => strip(value, characters, 'left'),
  rstrip: (value, [characters]) => strip(value, characters, 'right'),
  lower: (value) => value.toLowerCase(),
  casefold: (value) => value.toLowerCase(),
  upper: (value) => value.toUpperCase(),
  title: (value) => toTitle(value),
  capitalize: (value) => capitalize(value),
  startswith: (value, [marks]) => anyOf(marks, (mark) => value.startsWith(mark)),
  endswith: (value, [marks]) => anyOf(marks, (mark) => value.endsWith(mark)),
  removeprefix: (value, [mark]) => (value.startsWith(text(mark)) ? value.slice(text(mark).length) : value),
  removesuffix: (value, [mark]) =>
    text(mark) !== '' && value.endsWith(text(mark)) ? value.slice(0, -text(mark).length) : value,
  find: (value, [mark]) => value.indexOf(text(mark)),
  rfind: (value, [mark]) => value.lastIndexOf(text(mark)),
  index: (value, [mark]) => {
    const at = value.indexOf(text(mark))
    if (at < 0) throw new TemplateError('a text is not found')
    return at
  },
  count: (value, [mark]) => value.split(text(mark)).length - 1,
  format: (value, positional, keywords) => limit(formatTemplate(value, positional, keywords, readMember)),
  isdigit: (value) => /^\d+$/.test(value),
  isnumeric: (value) => /^\p{N}+$/u.test(value),
  isdecimal: (value) => /^\p{Nd}+$/u.test(value),
  isalpha: (value) => /^\p{L}+$/u.test(value),
  isalnum: (value) => /^[\p{L}\p{N}]+$/u.test(value),
  isupper: (value) => /\p{Lu}/u.test(value) && value === value.toUpperCase(),
  islower: (value) => /\p{Ll}/u.test(value) && value === value.toLowerCase(),
  zfill: (value, [size = 0]) => {
    const sign = /^[-+]/.exec(value)?.[0] ?? ''
    return sign + value.slice(sign.length).padStart(Math.min(Number(size), LENGTH_MAX) - sign.length, '0')
  },
  ljust: (value, [size = 0, fill = ' ']) => value.padEnd(Math.min(Number(size), LENGTH_MAX), text(fill)),
  rjust: (value, [size = 0, fill = ' ']) => value.padStart(Math.min(Number(size), LENGTH_MAX), text(fill)),
  encode: (value) => value,
  decode: (value) => value,
}

export function capitalize(value: string): string {
  return value.charAt(0).toUpperCase() + value.slice(1).toLowerCase()
}

export function toTitle(value: string): string {
  return value.replace(/\p{L}+/gu, capitalize)
}

const DATE_METHODS: Readonly<Record<string, Method<PyDate>>> = {
  strftime: (date, [format]) => strftime(date, text(format)),
  isoformat: (date) => date.toString(),
  weekday: (date) => isoWeek(date.days).weekday - 1,
  isoweekday: (date) => isoWeek(date.days).weekday,
  replace: (date, _positional, keywords) => replaceFields(new PyDateTime(0n, null), date, keywords).date,
}

function getDateField(date: PyDate, name: string): number | undefined {
  return name === 'year' || name === 'month' || name === 'day' ? date.civil[name] : undefined
}

const TIME_METHODS: Readonly<Record<string, Method<PyDateTime>>> = {
  strftime: (time, [format]) => strftime(time, text(format)),
  isoformat: (time, [separator = 'T', precision], keywords) => {
    const full = time.isoformat(text(separator))
    return (precision ?? keywords.timespec) === 'seconds' ? full.replace(/\.\d+/, '') : full
  },
  timestamp: (time) => toFloat(Number(time.epoch) / 1_000_000),
  date: (time) => time.date,
  weekday: (time) => isoWeek(time.days).weekday - 1,
  isoweekday: (time) => isoWeek(time.days).weekday,
  utcnow: (time) => time,
  astimezone: (time) => time.toUtc(),
  replace: (time, _positional, keywords) => replaceFields(time, time.date, keywords),
}

function getTimeField(time: PyDateTime, name: string): number | undefined {
  const { fields } = time
  return Object.hasOwn(fields, name) ? fields[name as keyof typeof fields] : undefined
}

function replaceFields(time: PyDateTime, date: PyDate, keywords: Keywords): PyDateTime {
  const numbers = Object.fromEntries(
    Object.entries(keywords).filter((entry): entry is [string, number] => typeof entry[1] === 'number'),
  )
  const offset = Object.hasOwn(keywords, 'tzinfo') && keywords.tzinfo === null ? null : time.offset
  return createDateTime({ ...time.fields, ...date.civil, ...numbers }, offset)
}

function getDeltaField(delta: PyTimeDelta, name: string): PyValue | undefined {
  const seconds = Math.floor(totalSeconds(delta))
  if (name === 'days') return Math.floor(seconds / 86_400)
  if (name === 'seconds') return ((seconds % 86_400) + 86_400) % 86_400
  if (name === 'total_seconds') return new PyFunction(name, () => toFloat(totalSeconds(delta)))
  return undefined
}
