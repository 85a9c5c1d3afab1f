import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { loadStoreModule } from '../../src/stores/load-store-module.ts'
import { locateStore } from '../../src/stores/drivers.ts'

let folder: string
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'tidemark-store-module-'))))
afterEach(() => rmSync(folder, { recursive: true }))

test('the module named in the environment registers its store', async () => {
  writeFileSync(
    join(folder, 'store.mjs'),
    "export default { schemes: ['fromfile'], locate: (url) => ({ product: 'FromFile', describe: () => url }) }",
  )
  await loadStoreModule({}, folder)
  expect(() => locateStore('fromfile:x', folder)).toThrow('unsupported store type')
  await loadStoreModule({ TIDEMARK_STORE_MODULE: './store.mjs' }, folder)
  expect(locateStore('fromfile:x', folder).product).toBe('FromFile')
})

test.each([
  ['./missing.mjs', 'cannot be loaded'],
  ['a-package-that-is-not-installed', 'cannot be loaded'],
  ['./empty.mjs', 'not a store driver'],
])('%s is refused: %s', async (name, message) => {
  writeFileSync(join(folder, 'empty.mjs'), 'export default {}')
  await expect(loadStoreModule({ TIDEMARK_STORE_MODULE: name }, folder)).rejects.toMatchObject({
    code: 'PACKAGE_UNFIT',
    message: expect.stringContaining(message) as unknown,
  })
})
