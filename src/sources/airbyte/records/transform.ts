import type { JsonObject, JsonValue } from '../../../contract/index.ts'
import { toPython, type Names } from '../jinja/interpolation.ts'
import { isFloat, type PyValue } from '../jinja/values.ts'
import { components, isRecord, textOf, texts, type Component } from '../manifest/component.ts'
import { toJson, type Run } from '../requests/run.ts'
import { getAt, removeAt, setAt } from './extract.ts'

/** Applies one transformation to a record. The record is a copy that may be changed. */
export function transformRecord(record: JsonObject, transformation: Component, run: Run, names: Names): void {
  switch (transformation.type) {
    case 'AddFields':
      return addFields(record, transformation, run, names)
    case 'RemoveFields':
      return removeFields(record, transformation, run)
    case 'KeysToLower':
      return renameMembers(record, (name) => name.toLowerCase())
    case 'KeysToSnakeCase':
      return snakeCaseMembers(record)
    case 'KeysReplace': {
      const before = run.text(transformation.old ?? '', transformation, { ...names, record: toPython(record) })
      const after = run.text(transformation.new ?? '', transformation, { ...names, record: toPython(record) })
      return replaceInNames(record, before, after)
    }
    case 'DpathFlattenFields':
      return flattenField(record, transformation, run)
    default:
      return
  }
}

function addFields(record: JsonObject, transformation: Component, run: Run, names: Names): void {
  const condition = textOf(transformation.condition) ?? ''
  for (const field of components(transformation.fields)) {
    const path = texts(field.path)
    const seen = { ...names, record: toPython(record) }
    const owner = { ...field, $parameters: field.$parameters ?? transformation.$parameters ?? {} }
    const isValid = TYPE_CHECKS[textOf(field.value_type) ?? ''] ?? (() => true)
    const value = typeof field.value === 'string' ? run.typed(field.value, owner, seen, isValid) : toPython(field.value)
    if (condition !== '' && !run.test(condition, transformation, { ...seen, value, path })) continue
    setAt(record, path, toJson(value))
  }
}

/** The types that a declared field accepts; another value stays a text. */
const TYPE_CHECKS: Readonly<Record<string, (value: PyValue) => boolean>> = {
  string: (value) => typeof value === 'string',
  boolean: (value) => typeof value === 'boolean',
  integer: (value) =>
    typeof value === 'bigint' || typeof value === 'boolean' || (typeof value === 'number' && Number.isInteger(value)),
  number: (value) => isFloat(value),
}

function removeFields(record: JsonObject, transformation: Component, run: Run): void {
  const condition = textOf(transformation.condition) ?? ''
  const isRemoved = (value: JsonValue): boolean =>
    condition === '' || run.test(condition, transformation, { property: toPython(value) })
  for (const pointer of Array.isArray(transformation.field_pointers) ? transformation.field_pointers : [])
    removeAt(record, texts(pointer), isRemoved)
}

function renameMembers(record: JsonObject, rename: (name: string) => string): void {
  for (const [name, value] of Object.entries(record)) {
    const renamed = rename(name)
    if (renamed === name) continue
    delete record[name]
    setAt(record, [renamed], value ?? null)
  }
}

function snakeCaseMembers(record: JsonObject): void {
  for (const [name, value] of Object.entries(record)) {
    if (isRecord(value)) snakeCaseMembers(value)
    delete record[name]
    setAt(record, [toSnakeCase(name)], value ?? null)
  }
}

/** Splits a name at capitals, digits and other characters, as the framework does. */
function toSnakeCase(name: string): string {
  const plain = name.normalize('NFKD').replace(/\p{M}/gu, '')
  const found = [...plain.matchAll(/[A-Z]+[a-z]*|[a-z]+|\d+|[^a-zA-Z\d]+/g)]
  const parts = found.map(([part]) => (/^[a-zA-Z\d]/.test(part) ? part.toLowerCase() : ''))
  const kept = parts.filter((part, index) => part !== '' || index === 0 || index === parts.length - 1)
  return (/^\d/.test(kept[0] ?? '') ? ['', ...kept] : kept).join('_')
}

function replaceInNames(value: JsonValue | undefined, before: string, after: string): void {
  if (Array.isArray(value)) for (const item of value) replaceInNames(item, before, after)
  if (!isRecord(value) || before === '') return
  for (const member of Object.values(value)) replaceInNames(member, before, after)
  renameMembers(value, (name) => name.replaceAll(before, () => after))
}

function flattenField(record: JsonObject, transformation: Component, run: Run): void {
  const path = texts(transformation.field_path).map((part) => run.text(part, transformation))
  const found = getAt(record, path)
  if (!isRecord(found)) return
  const replaces = transformation.replace_record === true
  const conflicts = Object.keys(found).some((name) => Object.hasOwn(record, name))
  if (replaces) for (const name of Object.keys(record)) delete record[name]
  else if (conflicts) return
  else if (transformation.delete_origin_value === true) removeAt(record, path, () => true)
  for (const [name, value] of Object.entries(found)) setAt(record, [name], value ?? null)
}
