import { expect, test } from 'vitest'
import { hashLink, serializeLink, type AuditChainFields } from '../../src/registry/audit-chain.ts'

const ENTRY: AuditChainFields = {
  worker: 'crm',
  sync: 'delta',
  epoch: 1,
  version: 2,
  at: 3,
  actor: 'ana',
  action: 'set',
  reason: 'why',
  cycle: 4,
  state: '"s"',
}
const OTHER: AuditChainFields = {
  worker: 'erp',
  sync: 'list',
  epoch: 9,
  version: 9,
  at: 9,
  actor: 'bo',
  action: 'abandon',
  reason: 'not',
  cycle: 9,
  state: '"t"',
}

test.each(Object.keys(ENTRY) as Array<keyof AuditChainFields>)('Z22 the hash of an entry covers its %s', (field) => {
  expect(serializeLink({ ...ENTRY, [field]: OTHER[field] })).not.toBe(serializeLink(ENTRY))
})

test('Z22 the hash of an entry covers the one before it', () => {
  expect(hashLink('a', serializeLink(ENTRY))).not.toBe(hashLink('b', serializeLink(ENTRY)))
})
