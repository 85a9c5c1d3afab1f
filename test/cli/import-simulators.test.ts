import { expect, test } from 'vitest'
import { importSimulators } from '../../src/cli/kit/import-simulators.ts'

const missing = (name: string): Error =>
  Object.assign(new Error(`Cannot find package '${name}' imported from demo.js`), { code: 'ERR_MODULE_NOT_FOUND' })

test('without the simulators, the error has the command that installs them', async () => {
  await expect(importSimulators(() => Promise.reject(missing('@tidemark/simulators')))).rejects.toMatchObject({
    code: 'PACKAGE_UNFIT',
    message: 'This needs the package @tidemark/simulators. Run: npm install --save-dev @tidemark/simulators',
  })
})

test('another missing module is not blamed on the simulators', async () => {
  await expect(importSimulators(() => Promise.reject(missing('left-pad')))).rejects.toThrow('left-pad')
})

test('an error of the loaded module is thrown unchanged', async () => {
  const failure = new Error('no memory for @tidemark/simulators')
  await expect(importSimulators(() => Promise.reject(failure))).rejects.toBe(failure)
})
