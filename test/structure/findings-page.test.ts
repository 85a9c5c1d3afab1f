import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { FAULTS } from '../../src/linter/index.ts'

const page = join(import.meta.dirname, '../../docs/reference/findings.md')

const INTRO = `# Findings of \`tidemark check\`

The check reads one cycle of each sync from the real source with the production engine on an in-memory store, up to a
page limit (\`--pages\`, default 20). The first pages are read twice, and an incremental sync starts a second cycle.
An error makes the command exit with 1. A comment in the worker suppresses a finding, which is then reported as ignored:
\`// tidemark-ignore <sync>: <finding>, <finding>\`.

| finding | severity | what to do |
|---|---|---|
`

test('docs/reference/findings.md and the table of faults are the same (TIDEMARK_UPDATE=1 writes the page)', () => {
  const rows = Object.entries(FAULTS).map(
    ([code, { severity, todo }]) => `| \`${code}\` | ${severity} | ${todo.replaceAll('|', '\\|')} |`,
  )
  const expected = `${INTRO}${rows.join('\n')}\n`
  if (process.env.TIDEMARK_UPDATE === '1') writeFileSync(page, expected)
  expect(readFileSync(page, 'utf8')).toBe(expected)
})
