import { execFileSync } from 'node:child_process'
import { resolve } from 'node:path'
import { expect, test } from 'vitest'
import { runCase } from './run-case.ts'
import { CASES_WITH_POSTGRES, CASES_WITHOUT } from './case-names.ts'

test.each(CASES_WITHOUT)('bench --only %s completes and prints its results', async (name) => {
  await runCase(name)
})

test('every case of the bench has a test', () => {
  const program = resolve(import.meta.dirname, '../../bench/run.mjs')
  const help = execFileSync(process.execPath, [program, '--help'], { encoding: 'utf8' })
  const listed = /^Cases: (.*)\.$/m.exec(help)![1]!.split(', ')
  expect([...CASES_WITHOUT, ...CASES_WITH_POSTGRES].toSorted()).toEqual(listed.toSorted())
})

test('an unknown case ends with code 2 and the list of cases', async () => {
  const names = expect.stringContaining('sqlite, postgres') as string
  await expect(runCase('sqlight')).rejects.toMatchObject({ code: 2, stderr: names })
})
