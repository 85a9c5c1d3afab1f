import { SCALAR_TYPES } from '../contract/index.ts'
import { didYouMean } from '../values/did-you-mean.ts'
import { isWithin, overlaps } from './field-paths.ts'
import type { ColumnRules } from './column-rules.ts'

/** A mistake in column rules, and the rule that it is in. */
export interface ColumnRuleFault {
  readonly rule: string
  readonly message: string
}

const RULES = ['select', 'drop', 'rename', 'cast', 'hash', 'mask', 'encrypt', 'map'] as const

/** Returns the first mistake, or null. `key` lists the declared key, in the names of the stored fields. */
export function findColumnRuleFault(given: unknown, key: readonly string[] = []): ColumnRuleFault | null {
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    return { rule: '', message: 'the rules must be an object' }
  const unknown = Object.keys(given).find((name) => !(RULES as readonly string[]).includes(name))
  if (unknown !== undefined)
    return { rule: unknown, message: `unknown rule ${JSON.stringify(unknown)}.${didYouMean(unknown, RULES)}` }
  const rules = given as ColumnRules
  return findShapeFault(rules) ?? findConflict(rules) ?? findRenameConflict(rules) ?? findKeyFault(rules, key)
}

function findShapeFault(rules: ColumnRules): ColumnRuleFault | null {
  for (const rule of ['select', 'drop', 'hash', 'encrypt'] as const) {
    const list: unknown = rules[rule]
    if (list === undefined) continue
    if (!Array.isArray(list) || list.length === 0 || !list.every(isFieldName))
      return { rule, message: 'it must be a list of field names' }
    if (new Set(list).size !== list.length) return { rule, message: 'it names a field twice' }
  }
  for (const [rule, isValid, expected] of VALUE_RULES) {
    const values: unknown = rules[rule]
    if (values === undefined) continue
    if (typeof values !== 'object' || values === null || Array.isArray(values))
      return { rule, message: 'it must be an object with a field name for every key' }
    for (const [field, value] of Object.entries(values))
      if (!isFieldName(field) || !isValid(value)) return { rule, message: `${field}: it must be ${expected}` }
  }
  const map: unknown = rules.map
  if (map === undefined) return null
  const { version, apply } = (map ?? {}) as { version?: unknown; apply?: unknown }
  if (typeof apply !== 'function') return { rule: 'map', message: '`apply` must be a function' }
  const isVersion = (typeof version === 'string' && version !== '') || Number.isFinite(version)
  return isVersion ? null : { rule: 'map', message: '`version` must be a text or a number' }
}

const VALUE_RULES = [
  ['rename', isFieldName, 'the new name of the field'],
  ['cast', isColumnType, `a column type: ${SCALAR_TYPES.join(', ')}, or one of them with []`],
  ['mask', isMask, 'the number of characters to keep, or a text'],
] as const

function isFieldName(name: unknown): boolean {
  return typeof name === 'string' && name !== ''
}

function isColumnType(type: unknown): boolean {
  return typeof type === 'string' && SCALAR_TYPES.some((scalar) => type === scalar || type === `${scalar}[]`)
}

function isMask(mask: unknown): boolean {
  return typeof mask === 'string' || (typeof mask === 'number' && Number.isSafeInteger(mask) && mask >= 0)
}

/** A rule without an effect would hide that a field is not treated as its author expects. */
function findConflict(rules: ColumnRules): ColumnRuleFault | null {
  const { select, drop = [] } = rules
  const named = listNamedFields(rules)
  for (const { rule, field } of named) {
    if (rule !== 'drop') {
      const dropped = drop.find((path) => isWithin(field, path))
      if (dropped !== undefined) return { rule, message: `${field} has no effect, because \`drop\` removes ${dropped}` }
    }
    if (select !== undefined && !select.some((path) => overlaps(path, field)))
      return { rule, message: `${field} has no effect, because \`select\` does not keep it` }
  }
  const nestedDrop = drop.find((path) => drop.some((other) => other !== path && isWithin(path, other)))
  if (nestedDrop !== undefined) return { rule: 'drop', message: `${nestedDrop} is dropped with the field it is in` }
  const protectedFields = listProtectedFields(rules)
  for (const [index, { rule, field }] of protectedFields.entries()) {
    const other = protectedFields.slice(0, index).find((earlier) => overlaps(earlier.field, field))
    if (other !== undefined)
      return {
        rule,
        message: `${field} is also in \`${other.rule}\`${other.field === field ? '' : ` (${other.field})`}; a value can be replaced only once`,
      }
  }
  return null
}

function listNamedFields(rules: ColumnRules): Array<{ rule: string; field: string }> {
  const { drop = [], rename = {}, cast = {} } = rules
  return [
    ...drop.map((field) => ({ rule: 'drop', field })),
    ...Object.keys(cast).map((field) => ({ rule: 'cast', field })),
    ...listProtectedFields(rules),
    ...Object.keys(rename).map((field) => ({ rule: 'rename', field })),
  ]
}

function listProtectedFields({
  hash = [],
  mask = {},
  encrypt = [],
}: ColumnRules): Array<{ rule: string; field: string }> {
  return [
    ...hash.map((field) => ({ rule: 'hash', field })),
    ...Object.keys(mask).map((field) => ({ rule: 'mask', field })),
    ...encrypt.map((field) => ({ rule: 'encrypt', field })),
  ]
}

function findRenameConflict({ rename = {}, select }: ColumnRules): ColumnRuleFault | null {
  const entries = Object.entries(rename)
  for (const [from, to] of entries) {
    const fault = (what: string): ColumnRuleFault => ({ rule: 'rename', message: `${from}: ${what}` })
    if (from === to) return fault('the new name is the old one')
    const others = entries.filter(([other]) => other !== from)
    if (others.some(([other]) => overlaps(other, from))) return fault('the field, or one around it, is renamed too')
    if (others.some(([, other]) => overlaps(other, to))) return fault(`two fields would be named ${to}`)
    const isKept = select?.some((path) => path === to && !entries.some(([other]) => other === path)) === true
    if (isKept) return fault(`\`select\` keeps another field named ${to}`)
  }
  return null
}

/** The key of a row shows the values that it is made of, so they cannot be protected. */
function findKeyFault(rules: ColumnRules, key: readonly string[]): ColumnRuleFault | null {
  const renames = Object.entries(rules.rename ?? {})
  for (const name of key) {
    if (renames.some(([from]) => from === name) && !renames.some(([, to]) => to === name))
      return { rule: 'rename', message: `${name} is part of the key; \`key\` names fields as they are stored` }
    const field = renames.find(([, to]) => to === name)?.[0] ?? name
    const { drop = [] } = rules
    const hidden = [...drop.map((path) => ({ rule: 'drop', field: path })), ...listProtectedFields(rules)].find(
      (other) => overlaps(other.field, field),
    )
    if (hidden !== undefined) return { rule: hidden.rule, message: describeKeyField(hidden.field) }
  }
  return null
}

export function describeKeyField(field: string): string {
  return `${field} is part of the key, and \`_key\` shows its value; use another key, or change the field in the source`
}
