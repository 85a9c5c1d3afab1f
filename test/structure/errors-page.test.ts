import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ERROR_CODES } from '../../src/contract/index.ts'

const page = join(import.meta.dirname, '../../docs/reference/errors.md')

const INTRO = `# Error codes

Every error has a permanent code, a remedy that the engine acts on, and advice for you.
The remedies: **retry** and **wait** are retried automatically, **reauth** stops until the credentials are renewed,
**restart** requires you to discard the state, **fix** requires a change on your side, **bug** is a defect of a connector or of Tidemark.
The exit code of a command follows: 1 failed, 2 invalid input, 3 environment problem, 130 interrupted.

| code | remedy | exit | what to do |
|---|---|---|---|
`

const EXITS = { failed: 1, input: 2, environment: 3, interrupted: 130 }

test('docs/reference/errors.md and the table of codes are the same (TIDEMARK_UPDATE=1 writes the page)', () => {
  const rows = Object.entries(ERROR_CODES).map(
    ([code, { remedy, category, advice }]) =>
      `| \`${code}\` | ${remedy} | ${EXITS[category]} | ${advice.replaceAll('|', '\\|')} |`,
  )
  const expected = `${INTRO}${rows.join('\n')}\n`
  if (process.env.TIDEMARK_UPDATE === '1') writeFileSync(page, expected)
  expect(readFileSync(page, 'utf8')).toBe(expected)
})

test('every advice is a sentence with an instruction', () => {
  for (const [code, { advice }] of Object.entries(ERROR_CODES)) expect(advice, code).toMatch(/^[A-Z`].{15,}\.$/)
})
