import { expect, test, vi } from 'vitest'
import { sql } from '../../../src/sources/sql/source.ts'
import { contextOf } from './cases.ts'

vi.mock('mysql2', () => {
  throw new Error("Cannot find package 'mysql2'")
})

test('without its package, the SQL source names the command that installs it', async () => {
  await expect(
    sql({ url: 'mysql://nobody@127.0.0.1:1/shop' }).listing('t').execute(undefined, contextOf()),
  ).rejects.toMatchObject({
    code: 'PACKAGE_UNFIT',
    message: expect.stringContaining('npm install mysql2'),
  })
})
