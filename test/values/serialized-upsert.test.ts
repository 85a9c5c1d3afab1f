import { describe, expect, test } from 'vitest'
import type { Change, JsonObject } from '../../src/contract/index.ts'
import { getSerializedRecord, serializedUpsert, type SerializedShape } from '../../src/values/serialized-upsert.ts'

let reads = 0
const shape: SerializedShape = {
  columns: [{ name: 'n', kinds: ['integer'] }],
  parse: (text) => {
    reads++
    return JSON.parse(text) as JsonObject
  },
}
type Upsert = Extract<Change, { type: 'upsert' }>
const upsert = (): Upsert => serializedUpsert('k', { text: '{"n":1}', shape })

describe('a serialized upsert', () => {
  test('is its text until the record is read, and its record from then on', () => {
    const change = upsert()
    reads = 0
    expect(getSerializedRecord(change)).toEqual({ text: '{"n":1}', shape })
    expect(reads).toBe(0)
    change.record['n'] = 2
    expect(getSerializedRecord(change)).toBeNull()
    expect([change.record, reads]).toEqual([{ n: 2 }, 1])
  })

  test('can be copied like any other change', () => {
    const plain = { type: 'upsert', key: 'k', record: { n: 1 } }
    expect(upsert()).toEqual(plain)
    const change: Change = upsert()
    const copy: Change = { ...change }
    expect(copy).toStrictEqual(plain)
    expect(getSerializedRecord(copy)).toBeNull()
    expect(structuredClone(upsert())).toEqual(plain)
    expect(JSON.parse(JSON.stringify(upsert()))).toEqual(plain)
    expect(Object.keys(upsert())).toContain('record')
  })

  test('a replaced record counts', () => {
    const change = upsert()
    change.record = { n: 3 }
    expect(getSerializedRecord(change)).toBeNull()
    expect(change).toEqual({ type: 'upsert', key: 'k', record: { n: 3 } })
  })

  test('any other change has no text', () => {
    expect(getSerializedRecord({ type: 'upsert', key: 'k', record: {} })).toBeNull()
    expect(getSerializedRecord({ type: 'delete', key: 'k' })).toBeNull()
  })
})
