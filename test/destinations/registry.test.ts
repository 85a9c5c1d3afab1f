import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { SCALAR_TYPES, type ColumnType } from '../../src/contract/index.ts'
import duckdb from '../../src/destinations/duckdb/descriptor.ts'
import { sqlTypeOf as duckdbTypeOf } from '../../src/destinations/duckdb/column-types.ts'
import type { DestinationDescriptor } from '../../src/destinations/kit/define-destination.ts'
import mariadb from '../../src/destinations/mariadb/descriptor.ts'
import { sqlTypeOf as mariadbTypeOf } from '../../src/destinations/mariadb/values.ts'
import postgres from '../../src/destinations/postgres/descriptor.ts'
import { DESTINATIONS } from '../../src/destinations/registry.ts'
import { sqlTypeOf as postgresTypeOf } from '../../src/stores/postgres/binary-values.ts'
import { ROOT } from '../cli/package.ts'

const FOLDER = join(ROOT, 'src/destinations')
const DESCRIPTORS = Object.values<DestinationDescriptor>(DESTINATIONS)

describe('the registry', () => {
  test('has every folder, under the name of its descriptor', () => {
    const folders = readdirSync(FOLDER, { withFileTypes: true }).filter((entry) => entry.isDirectory())
    const names = folders.map(({ name }) => name).filter((name) => name !== 'kit' && name !== 'loop')
    expect(Object.keys(DESTINATIONS)).toEqual(names.toSorted())
    expect(DESCRIPTORS.map(({ name }) => name)).toEqual(Object.keys(DESTINATIONS))
  })
})

describe.each(DESCRIPTORS)('$name', ({ name, types, limits, config }) => {
  test('its descriptor imports the destination and other packages only when it is created', () => {
    const code = readFileSync(join(FOLDER, name, 'descriptor.ts'), 'utf8')
    const imported = [...code.matchAll(/^import (?!type\b)[^'"]*['"]([^'"]+)['"]/gm)].map(([, target]) => target!)
    expect(imported.filter((target) => !/^\.\.\/|^node:/.test(target))).toEqual([])
  })

  test('it has a column for every type of the store, a policy for what does not fit, and a config', () => {
    expect(Object.keys(types).toSorted()).toEqual([...SCALAR_TYPES, 'list'].toSorted())
    for (const text of [...Object.values(types), ...limits.flat()]) expect(text).not.toBe('')
    expect(limits.length).toBeGreaterThan(0)
    expect(Object.keys(config.properties).length).toBeGreaterThan(0)
  })
})

/** The documentation shows the types of the descriptor. */
describe.each([
  { descriptor: postgres, sqlTypeOf: postgresTypeOf, list: (item: string) => `${item}[]`, note: '' },
  { descriptor: mariadb, sqlTypeOf: mariadbTypeOf, list: () => 'longtext', note: ', in UTC' },
  {
    descriptor: duckdb,
    sqlTypeOf: (type: ColumnType) => duckdbTypeOf({ type }),
    list: (item: string) => `${item}[]`,
    note: '',
  },
])('$descriptor.name', ({ descriptor: { types }, sqlTypeOf, list, note }) => {
  test.each(SCALAR_TYPES)('a column of type %s is created as it is documented', (type) => {
    const created = sqlTypeOf(type).replace(/ character set .*/, '')
    expect(`${created}${type === 'timestamp' ? note : ''}`).toBe(types[type])
    expect(sqlTypeOf(`${type}[]`)).toBe(list(sqlTypeOf(type)))
  })
})
