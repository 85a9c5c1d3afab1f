import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { FAULTS } from '../../src/linter/index.ts'

const page = join(import.meta.dirname, '../../docs/reference/findings.md')

const INTRO = `# Findings of \`tidemark check\`

The command reads one cycle of each sync with the real source, by the production engine on an in-memory store, up to a limit of pages
(\`--pages\`, 20 by default); it requests the first pages twice, and begins a second cycle of a sync that keeps state.
An error makes the command exit with 1. A comment in the worker suppresses a finding:
\`// tidemark-ignore <sync>: <finding>, <finding>\`. Suppressed findings are still printed, as ignored.

| finding | severity | rule | what to do |
|---|---|---|---|
`

test('docs/reference/findings.md and the table of faults are the same (TIDEMARK_UPDATE=1 writes the page)', () => {
  const rows = Object.entries(FAULTS).map(([word, { severity, rule, todo }]) => `| \`${word}\` | ${severity} | ${rule} | ${todo.replaceAll('|', '\\|')} |`)
  const expected = `${INTRO}${rows.join('\n')}\n`
  if (process.env.TIDEMARK_UPDATE === '1') writeFileSync(page, expected)
  expect(readFileSync(page, 'utf8')).toBe(expected)
})
