import type { JsonObject, JsonValue } from '../../../contract/index.ts'
import { isRecord, texts, type Component } from '../manifest/component.ts'
import type { Run } from '../requests/run.ts'

/** The records of a body, by the path of a `DpathExtractor`. */
export function extractRecords(body: JsonValue, extractor: Component, run: Run): JsonValue[] {
  const path = texts(extractor.field_path).map((part) => run.text(part, extractor))
  const found = path.length === 0 ? body : path.includes('*') ? findAll(body, path) : getAt(body, path)
  if (Array.isArray(found)) return found
  const isEmpty = found === undefined || found === null || found === '' || found === false || found === 0
  return isEmpty || (isRecord(found) && Object.keys(found).length === 0) ? [] : [found]
}

/** The value at a path of names and indexes. */
export function getAt(value: JsonValue | undefined, path: readonly string[]): JsonValue | undefined {
  return path.reduce<JsonValue | undefined>((owner, name) => {
    if (Array.isArray(owner)) return /^-?\d+$/.test(name) ? owner.at(Number(name)) : undefined
    return isRecord(owner) && Object.hasOwn(owner, name) ? owner[name] : undefined
  }, value)
}

function findAll(value: JsonValue, path: readonly string[]): JsonValue[] {
  const [name, ...others] = path
  if (name === undefined) return [value]
  if (name === '**') return [...findAll(value, others), ...members(value).flatMap((member) => findAll(member, path))]
  if (name === '*') return members(value).flatMap((member) => findAll(member, others))
  const found = getAt(value, [name])
  return found === undefined ? [] : findAll(found, others)
}

function members(value: JsonValue): JsonValue[] {
  if (Array.isArray(value)) return value
  return isRecord(value) ? Object.values(value).filter((member) => member !== undefined) : []
}

/** Sets the value at a path, and creates the objects on the way. */
export function setAt(record: JsonObject, [name, ...others]: readonly string[], value: JsonValue): void {
  if (name === undefined) return
  if (others.length === 0) return define(record, name, value)
  const next = Object.hasOwn(record, name) ? record[name] : undefined
  if (Array.isArray(next)) return setInList(next, others, value)
  const owner = isRecord(next) ? next : {}
  if (owner !== next) define(record, name, owner)
  setAt(owner, others, value)
}

function setInList(list: JsonValue[], [name = '', ...others]: readonly string[], value: JsonValue): void {
  const index = Number(name)
  if (!Number.isInteger(index) || index < 0 || index > list.length) return
  const member = list[index]
  if (others.length === 0) list[index] = value
  else if (isRecord(member)) setAt(member, others, value)
}

/** Removes the members at a path, where `*` is any name. A missing member is no error. */
export function removeAt(
  value: JsonValue | undefined,
  [name, ...others]: readonly string[],
  isRemoved: (value: JsonValue) => boolean,
): void {
  if (name === undefined || typeof value !== 'object' || value === null) return
  if (Array.isArray(value)) {
    for (const [index, member] of value.entries())
      if (others.length > 0 && (name === '*' || name === String(index))) removeAt(member, others, isRemoved)
    return
  }
  for (const [field, member] of Object.entries(value)) {
    if (name !== field && !(name.includes('*') && matchesGlob(field, name))) continue
    if (others.length > 0) removeAt(member, others, isRemoved)
    else if (member !== undefined && isRemoved(member)) delete value[field]
  }
}

function matchesGlob(text: string, glob: string): boolean {
  if (glob === '*' || glob === '**') return true
  const parts = glob.split('*').map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
  return new RegExp(`^${parts.join('[\\s\\S]*?')}$`).test(text)
}

function define(record: JsonObject, name: string, value: JsonValue): void {
  Object.defineProperty(record, name, { value, enumerable: true, configurable: true, writable: true })
}
