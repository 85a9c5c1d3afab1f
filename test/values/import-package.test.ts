import { expect, test } from 'vitest'
import { importPackage } from '../../src/values/import-package.ts'

test('a package that cannot be imported is named with the command that installs it', async () => {
  const cause = new Error('Cannot find package')
  const missing = importPackage('@scope/name', 'Reading from S3 needs', () => Promise.reject(cause))
  await expect(missing).rejects.toMatchObject({
    code: 'PACKAGE_UNFIT',
    message: 'Reading from S3 needs the package @scope/name. Run: npm install @scope/name',
    cause,
  })
  expect(await importPackage('name', 'This needs', () => Promise.resolve({ a: 1 }))).toEqual({ a: 1 })
})
