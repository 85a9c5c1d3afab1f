#!/usr/bin/env node
// npm run bench [-- --only sqlite,queries --records N --json …]; `--help` lists the cases and the sizes. Every result
// is a ratio to a raw limit that is measured in the same run on the same machine, alternating with ours.
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { spawnSync } from 'node:child_process'
import { Bench, HERE } from './bench.mjs'
import { CASES, SLOW } from './cases/index.mjs'
import { renderTable } from './measures.mjs'
import { DEFAULTS, SMALL } from './sizes.mjs'

const sizeFlags = Object.fromEntries(Object.keys(DEFAULTS).map((name) => [name, { type: 'string' }]))
const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    json: { type: 'boolean', default: false },
    small: { type: 'boolean', default: false },
    postgres: { type: 'string' },
    help: { type: 'boolean', default: false },
    ...sizeFlags,
  },
})
if (values.help) {
  console.log(`Cases: ${Object.keys(CASES).join(', ')}.
Without --only all of them are run except ${SLOW.join(', ')}.
Sizes: ${Object.entries(DEFAULTS)
    .map(([name, size]) => `--${name} ${size}`)
    .join(', ')}; --small for a quick check.
--postgres <url> uses an existing server, with a separate database for each case.
--json prints one JSON document.`)
  process.exit(0)
}
const wanted = values.only?.split(',') ?? Object.keys(CASES).filter((name) => !SLOW.includes(name))
const unknown = wanted.filter((name) => CASES[name] === undefined)
if (unknown.length > 0) {
  console.error(`No such case: ${unknown.join(', ')}. There are ${Object.keys(CASES).join(', ')}.`)
  process.exit(2)
}
const named = Object.keys(sizeFlags).filter((name) => values[name] !== undefined)
const given = named.map((name) => [name, Number(values[name])])
const sizes = { ...(values.small ? SMALL : DEFAULTS), ...Object.fromEntries(given) }
process.env.TIDEMARK_KEY ??= randomBytes(32).toString('base64')
if (!existsSync(join(HERE, '../dist/index.js'))) {
  spawnSync('npm', ['run', 'build'], { cwd: join(HERE, '..'), stdio: 'inherit' })
}

const say = values.json ? () => {} : console.log
const machine = { node: process.version, cores: cpus().length, load: loadavg()[0], sizes }
say(`Node ${machine.node}, ${machine.cores} cores, load ${machine.load.toFixed(1)}`)
const bench = new Bench({ sizes, say, postgresUrl: values.postgres })
const cases = {}
try {
  for (const name of wanted) {
    say(`\n${CASES[name].title}`)
    cases[name] = await CASES[name].run(bench)
    say(renderTable(cases[name].measures))
  }
} finally {
  await bench.close()
}
const measures = Object.values(cases).flatMap((result) => result.measures)
const barred = measures.filter(({ bar }) => bar !== null)
if (wanted.length > 1 && barred.length > 0) say(`\nAll bars\n${renderTable(barred)}`)
if (values.json) console.log(JSON.stringify({ machine, cases }))
