import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { FAULTS } from '../../src/linter/index.ts'

const page = join(import.meta.dirname, '../../docs/reference/findings.md')

const INTRO = `# What \`tidemark check\` finds

One cycle of each sync is read with the real source, by the production engine on a store in memory, up to a bound of pages
(\`--pages\`, 20 unless given); the first pages are asked for again, and a sync that keeps its state begins a second cycle.
An error makes the command end with 1. A comment in the worker sets a finding aside:
\`// tidemark-ignore <sync>: <finding>, <finding>\`. What is set aside is still told, as ignored.

| finding | severity | rule | what to do |
|---|---|---|---|
`

test('docs/reference/findings.md and the table of faults are the same (TIDEMARK_UPDATE=1 writes the page)', () => {
  const rows = Object.entries(FAULTS).map(([word, { severity, rule, todo }]) => `| \`${word}\` | ${severity} | ${rule} | ${todo.replaceAll('|', '\\|')} |`)
  const expected = `${INTRO}${rows.join('\n')}\n`
  if (process.env.TIDEMARK_UPDATE === '1') writeFileSync(page, expected)
  expect(readFileSync(page, 'utf8')).toBe(expected)
})
