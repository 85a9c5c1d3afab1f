import { expect, test, vi } from 'vitest'
import { duckdb } from '../../src/destinations/duckdb/destination.ts'

vi.mock('@duckdb/node-api', () => {
  throw new Error("Cannot find package '@duckdb/node-api'")
})

test('without its package, the error has the command that installs it', async () => {
  const destination = duckdb({ file: '/nowhere/copy.duckdb' })
  await expect(destination.open({ tenant: 'default', signal: new AbortController().signal })).rejects.toMatchObject({
    code: 'PACKAGE_UNFIT',
    message: expect.stringContaining('npm install @duckdb/node-api'),
  })
})

test.each(['', ':memory:', 'a\0b'])('%j is not a file', (file) => {
  expect(() => duckdb({ file })).toThrow(expect.objectContaining({ code: 'DESTINATION_INVALID' }))
})
