import { expect, test } from 'vitest'
import { linkHash, linkText, type Chained } from '../../src/registry/chain.ts'

const ENTRY: Chained = {
  worker: 'crm', sync: 'delta', epoch: 1, version: 2, at: 3, actor: 'ana', action: 'set', reason: 'why', cycle: 4, state: '"s"',
}
const OTHER: Chained = {
  worker: 'erp', sync: 'list', epoch: 9, version: 9, at: 9, actor: 'bo', action: 'abandon', reason: 'not', cycle: 9, state: '"t"',
}

test.each(Object.keys(ENTRY) as Array<keyof Chained>)('Z22 the hash of an entry covers its %s', (field) => {
  expect(linkText({ ...ENTRY, [field]: OTHER[field] })).not.toBe(linkText(ENTRY))
})

test('Z22 the hash of an entry covers the one before it', () => {
  expect(linkHash('a', linkText(ENTRY))).not.toBe(linkHash('b', linkText(ENTRY)))
})
